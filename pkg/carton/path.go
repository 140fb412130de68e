package carton

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// CheckPath is the one rule for names: of zip entries, tar entries,
// annotations, MANIFEST, LINKS, tensor_data and symlink targets once resolved.
// A path is relative, clean (no empty, "." or ".." component), separated by
// slashes, valid UTF-8 without control characters and backslashes, at most
// [MaxPathBytes] long with components of at most [MaxNameBytes]. The error
// wraps ErrInsecurePath.
func CheckPath(p string) error {
	switch {
	case p == "":
		return errorf(ErrInsecurePath, "", "a member has an empty name")
	case len(p) > MaxPathBytes:
		return errorf(ErrInsecurePath, p[:64]+"…", "name is %d bytes long, want at most %d", len(p), MaxPathBytes)
	case !utf8.ValidString(p):
		return errorf(ErrInsecurePath, p, "name is not UTF-8")
	case p[0] == '/':
		return errorf(ErrInsecurePath, p, "name is absolute")
	case strings.Contains(p, `\`):
		return errorf(ErrInsecurePath, p, "name holds a backslash")
	case path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return errorf(ErrInsecurePath, p, "name is not clean: it holds an empty, . or .. component")
	}
	for _, r := range p {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return errorf(ErrInsecurePath, p, "name holds the control character %U", r)
		}
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > MaxNameBytes {
			return errorf(ErrInsecurePath, p, "a component is %d bytes long, want at most %d", len(name), MaxNameBytes)
		}
	}
	return nil
}

// Paths is a set of member paths that can live side by side in a folder of any
// file system. Its zero value is empty and ready to use.
type Paths struct {
	files   map[string]string // folded path → path as added
	folders map[string]string // folded folder → first path below it
}

// Add checks p with [CheckPath] and against what was added before: the same
// path, one that differs only in case or Unicode normalisation, and a file
// where another path needs a folder are ErrInsecurePath.
func (s *Paths) Add(p string) error {
	if err := CheckPath(p); err != nil {
		return err
	}
	if s.files == nil {
		s.files, s.folders = map[string]string{}, map[string]string{}
	}
	folded := fold(p)
	if other, ok := s.files[folded]; ok {
		if other == p {
			return errorf(ErrInsecurePath, p, "name occurs twice")
		}
		return errorf(ErrInsecurePath, p, "name differs from %s only in case or normalisation", quotePath(other))
	}
	if below, ok := s.folders[folded]; ok {
		return errorf(ErrInsecurePath, p, "is a file and also the folder of %s", quotePath(below))
	}
	if err := s.addFolders(p, folded); err != nil {
		return err
	}
	s.files[folded] = p
	return nil
}

// addFolders adds the folders that p lies in: all, or with an error none.
func (s *Paths) addFolders(p, folded string) error {
	fresh := 0 // how many, innermost first, are not there yet
	dir, key := path.Dir(p), path.Dir(folded)
	for ; dir != "."; dir, key = path.Dir(dir), path.Dir(key) {
		if file, ok := s.files[key]; ok {
			return errorf(ErrInsecurePath, p, "lies below %s, which is a file", quotePath(file))
		}
		first, seen := s.folders[key]
		if seen && strings.HasPrefix(first, dir+"/") {
			break // and so are the folders around it
		}
		if seen {
			return errorf(ErrInsecurePath, p, "its folder differs from that of %s only in case or normalisation", quotePath(first))
		}
		fresh++
	}
	if len(s.folders)+fresh > MaxFolders {
		return errorf(ErrLimit, p, "members lie in more than %d folders", MaxFolders)
	}
	key = folded
	for range fresh {
		key = path.Dir(key)
		s.folders[key] = p
	}
	return nil
}

// addFolder adds a folder that may be empty, as foreign zips list them. Unlike
// a file's, its name may come twice.
func (s *Paths) addFolder(p string) error {
	if err := CheckPath(p); err != nil {
		return err
	}
	if s.files == nil {
		s.files, s.folders = map[string]string{}, map[string]string{}
	}
	return s.addFolders(p+"/", fold(p)+"/")
}

// fold maps names that some file system takes for one to one string. Only
// paths beyond ASCII pay for normalisation and full case folding.
func fold(p string) string {
	for i := range len(p) {
		if p[i] >= utf8.RuneSelf {
			return norm.NFC.String(cases.Fold().String(norm.NFD.String(p)))
		}
	}
	return strings.ToLower(p)
}
