package download

// Claims returns which blocks of a part the journal claims.
func (j *Journal) Claims(part int) (blocks []int) {
	for _, c := range j.of(part) {
		blocks = append(blocks, int(c.block))
	}
	return blocks
}

// ClaimsKept returns how much memory the claims take, in claims.
func (j *Journal) ClaimsKept() int { return cap(j.claims) }
