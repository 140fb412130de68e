package pmf

import (
	"crypto/md5" // the format's own checksum: it tells accidents, not attacks
	"encoding/hex"
	"io"
	"io/fs"
)

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
		Msg: short(s.Path) + ": got MD5 " + short(got) + ", want " + s.Hash,
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
// among them: what [Model.Verify] compares, for who reads the files anyway.
func (m *Model) Sums() []Sum { return m.sums }

// Verify reads every file that has a recorded MD5, and compares. The error is
// an [*Invalid] with all files that differ, or fsys's own.
func (m *Model) Verify(fsys fs.FS) error {
	var found []Violation
	for _, s := range m.sums {
		got, err := md5Of(fsys, s.Path)
		if err != nil {
			return err
		}
		if v := s.Check(got); v != nil {
			found = append(found, *v)
		}
	}
	if len(found) > 0 {
		return &Invalid{Violations: found}
	}
	return nil
}

func md5Of(fsys fs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := md5.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
