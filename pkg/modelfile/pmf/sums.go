package pmf

// Sum is a file and the MD5 that a document records for it.
type Sum struct {
	File
	at   string // where the document says so
	line int
}

// Check compares the file's MD5, in lower-case hex, with the recorded one, and
// returns what [RuleChecksum] has to say, nil for nothing.
func (s Sum) Check(got string) *Violation {
	if got == s.Hash {
		return nil
	}
	return &Violation{
		Path: s.at, Line: s.line, Rule: RuleChecksum,
		Msg: short(s.Path) + " has the MD5 " + short(got) + ", and " + s.Hash + " was recorded",
	}
}

// sum notes that the file at name is to have the hash that stands in f.
func (t *tree) sum(f located, name string) {
	if f.Hash != "" {
		t.meta.model.sums = append(t.meta.model.sums, Sum{
			File: File{Path: name, Hash: f.Hash}, at: f.hash.path(), line: f.hash.line(),
		})
	}
}

// Sums returns every recorded MD5 of a file that is in the tree, nested trees'
// among them, for who reads the files: MD5 is the format's own checksum, and tells
// accidents, not attacks.
func (m *Model) Sums() []Sum { return m.sums }
