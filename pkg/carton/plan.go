package carton

import (
	"math"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// Plan is the canonical carton: the one zip that a list of members produces,
// laid out before a byte of it is written.
//
// Where everything lies is a function of the members' paths, sizes and symlink
// targets alone. Only the CRC-32 of a member, which nothing but its content
// tells, is filled in later ([Plan.SetCRC]). So members can be written in
// parallel, each at its final offset.
//
// # The bytes
//
// Records are those of PKWARE's APPNOTE.TXT 6.3.10
// (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), integers
// little-endian. The zip is, for every member in turn, a local header and the
// member's data; then the central directory, in the same order; then the end
// records. Nothing else: no folder entries, data descriptors or comments.
//
// Order: members sorted bytewise by path; behind them carton.toml, MANIFEST and
// LINKS, those that there are.
//
// Data: as it is (method 0). A symlink's is its target, relative and the
// shortest possible ("b", "../c/d").
//
// Every header has the flags 0x0800 (the name is UTF-8), the time 0x0000 and
// the date 0x0021 (1980-01-01 00:00:00), and needs version 20, or 45 where the
// member's central header has a zip64 field.
//
// Local header: sizes over 4 GiB - 2 are 0xFFFFFFFF, and a first extra field
// 0x0001 of 16 bytes holds both. Then comes padding, so that data begins at a
// multiple of 4096 where it has 1 MiB (1,048,576 bytes) and more, else of 64,
// and can be mapped into memory. Where the header without padding ends gap
// bytes before that, gap 0 means no padding; otherwise it is an extra field
// 0xa11e that is gap bytes long in all: header (4), the alignment as 16 bits
// (2), zeros. A gap below 6 is too short for that; the alignment is added to
// it.
//
// Central header: made by Unix (3) and the version needed; external attributes
// 0100644 << 16, for a symlink 0120777 << 16; disk, internal attributes and
// comment are 0. Values over 4 GiB - 2 are 0xFFFFFFFF, and an extra field 0x0001
// holds those, in the order size, compressed size, offset.
//
// End: where there are 65,535 entries or more, or the central directory is
// longer or begins later than 4 GiB - 2, a zip64 end record (made by 3 and 45,
// needs 45) and its locator come first, and the values in the end record that
// don't fit are all ones.
//
// Methods may be called from many goroutines at once.
type Plan struct {
	members   []planned // as they lie in the zip
	directory int64     // offset of the central directory
	size      int64

	mu sync.Mutex // guards the members' CRCs
}

// planned is a member and where it lies. Its size is that of its data: of the
// target, where it is a symlink.
type planned struct {
	Member
	data   int64 // bytes of data
	offset int64 // of the local header
	header int64 // length of the local header
	pad    int64 // its last bytes: the padding field
	crc    uint32
	known  bool // whether crc is
}

const (
	// planPage is what the data of large members is aligned to: the largest page
	// of common systems but for some ARM ones.
	planPage = 4096
	// planLine is the same for small ones: a cache line, and what safetensors
	// readers want.
	planLine = 64
	// planLarge is the size in bytes from which a member is large.
	planLarge = 1 << 20

	// planPadMin is the shortest padding field: its header and the alignment.
	planPadMin = 6
	// zipExtraPad is the padding field's id, not assigned by APPNOTE 4.5.2.
	zipExtraPad = 0xa11e
)

// NewPlan lays out the zip that holds the members, in any order. MANIFEST and
// LINKS are members here, if the zip is to have them. Members need a path and a
// size, symlinks a path and a target; everything else about them is ignored.
//
// The error wraps ErrInsecurePath for names that can't be side by side or a
// symlink that leads out of model/, ErrFormat for a size that is not known,
// ErrLimit for more than [MaxMembers] or for a zip of over 2^63-1 bytes.
func NewPlan(members []Member) (*Plan, error) {
	if len(members) > MaxMembers+2 { // MANIFEST and LINKS
		return nil, errorf(ErrLimit, "", "has %d members, and may have at most %d", len(members), MaxMembers)
	}
	p := &Plan{members: make([]planned, 0, len(members))}
	var paths Paths
	for _, m := range members {
		if err := paths.Add(m.Path); err != nil {
			return nil, err
		}
		e, err := newPlanned(m)
		if err != nil {
			return nil, err
		}
		p.members = append(p.members, e)
	}
	slices.SortFunc(p.members, func(a, b planned) int { return comparePlanned(a.Path, b.Path) })
	return p, p.layOut()
}

func newPlanned(m Member) (planned, error) {
	e := planned{Member: m, data: m.Size}
	switch {
	case m.Target != "":
		to, err := symlinkTarget(m.Path, m.Target)
		if err != nil {
			return e, err
		}
		e.Target = relativeTo(path.Dir(m.Path), to)
		e.data = int64(len(e.Target))
		e.crc, e.known = crcOf([]byte(e.Target)), true
	case m.Size < 0:
		return e, errorf(ErrFormat, m.Path, "size is not known")
	}
	return e, nil
}

// comparePlanned orders paths as they lie in the zip. What a reader wants first
// comes last: with the directory it is in what one request for the end gives.
func comparePlanned(a, b string) int {
	rank := func(p string) int {
		switch p {
		case InfoName:
			return 1
		case ManifestName:
			return 2
		case LinksName:
			return 3
		}
		return 0
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// layOut gives everything its offset.
func (p *Plan) layOut() error {
	// What a member takes beyond its data, and an end of any length, fit in here
	// many times over.
	const slack = 1 << 40
	var off, directory int64
	for i := range p.members {
		m := &p.members[i]
		if m.data > math.MaxInt64-slack-off {
			return errorf(ErrLimit, m.Path, "zip would be over 2^63-1 bytes")
		}
		m.offset = off
		m.layOutHeader()
		off += m.header + m.data
		directory += int64(zipdir.EntryLen + len(m.Path) + m.extra64Len())
	}
	p.directory = off
	p.size = off + directory + zipdir.EndLen
	if p.zip64(directory) {
		p.size += zipdir.End64Len + zipdir.Locator64Len
	}
	return nil
}

// layOutHeader sets the lengths of the local header and its padding.
func (m *planned) layOutHeader() {
	plain := int64(zipdir.LocalLen + len(m.Path))
	if m.data >= zipdir.Ones32 {
		plain += planLocal64Len
	}
	align := m.align()
	gap := -(m.offset + plain) & (align - 1) // align is a power of two
	if gap > 0 && gap < planPadMin {
		gap += align
	}
	m.header, m.pad = plain+gap, gap
}

func (m *planned) align() int64 {
	if m.data >= planLarge {
		return planPage
	}
	return planLine
}

// Len returns the number of members.
func (p *Plan) Len() int { return len(p.members) }

// Size returns the size of the zip in bytes.
func (p *Plan) Size() int64 { return p.size }

// Member returns the i-th member as it lies in the zip, from 0.
func (p *Plan) Member(i int) Member { return p.members[i].Member }

// find returns the index of a member. It reads nothing but paths: SetCRC may be
// changing the rest.
func (p *Plan) find(path string) (int, bool) {
	return sort.Find(len(p.members), func(i int) int { return comparePlanned(path, p.members[i].Path) })
}

// Extent returns where the data of a member lies in the zip: its offset and
// length in bytes. ok is false where the plan has no such member. A symlink's
// data is its target.
func (p *Plan) Extent(path string) (off, n int64, ok bool) {
	i, ok := p.find(path)
	if !ok {
		return 0, 0, false
	}
	m := &p.members[i]
	return m.offset + m.header, m.data, true
}

// SetCRC tells the plan the CRC-32 (IEEE) of a member's content. A path that the
// plan does not have is ErrFormat, another CRC than it was told before
// ErrChecksum. Symlinks need none: the plan knows their data.
func (p *Plan) SetCRC(path string, crc uint32) error {
	i, ok := p.find(path)
	if !ok {
		return errorf(ErrFormat, path, "is not in the plan of the zip")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &p.members[i]
	if m.known && m.crc != crc {
		return errorf(ErrChecksum, path, "got CRC %08x, and %08x before", crc, m.crc)
	}
	m.crc, m.known = crc, true
	return nil
}
