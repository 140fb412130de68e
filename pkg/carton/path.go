package carton

import (
	"hash/maphash"
	"strings"

	"github.com/carton-oci/carton-oci/internal/zipdir"
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
		return errorf(ErrInsecurePath, p[:64]+"…", "name is %d bytes long, and may be at most %d", len(p), MaxPathBytes)
	}
	if fault := zipdir.NameFault(p); fault != "" {
		return errorf(ErrInsecurePath, p, "%s", fault)
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > MaxNameBytes {
			return errorf(ErrInsecurePath, p, "a component is %d bytes long, and may be at most %d", len(name),
				MaxNameBytes)
		}
	}
	return nil
}

// Paths is a set of member paths that can live side by side in a folder of any
// file system. Its zero value is empty and ready to use. It keeps the paths that
// were added and no other form of them.
type Paths struct {
	files   map[uint64]string // by the hash of the folded path
	folders map[uint64]string // the first path below, by the hash of the folded folder
	seed    maphash.Seed
	bytes   int // of all paths
	fold    folding
}

// Add checks p with [CheckPath] and against what was added before: the same
// path, one that differs only in case or Unicode normalisation, and a file
// where another path needs a folder are ErrInsecurePath; paths that have over
// [MaxNamesBytes] together, or name over [MaxFolders], are ErrLimit.
func (s *Paths) Add(p string) error {
	if err := s.begin(p); err != nil {
		return err
	}
	folded := s.fold.path(p)
	key, other, ok := s.file(folded)
	if ok {
		if other == p {
			return errorf(ErrInsecurePath, p, "name occurs twice")
		}
		return errorf(ErrInsecurePath, p, "name differs from %s only in case or normalisation", quotePath(other))
	}
	if _, below, ok := s.folderOf(p, folded); ok {
		return errorf(ErrInsecurePath, p, "is a file and also the folder of %s", quotePath(below))
	}
	if err := s.addFolders(p, folded); err != nil {
		return err
	}
	s.files[key] = p
	return nil
}

// begin checks what a path says by itself, and counts its bytes.
func (s *Paths) begin(p string) error {
	if err := CheckPath(p); err != nil {
		return err
	}
	if s.bytes += len(p); s.bytes > MaxNamesBytes {
		return errorf(ErrLimit, "", "the names of the members have more than %d bytes together", MaxNamesBytes)
	}
	if s.files == nil {
		s.files, s.folders, s.seed = map[uint64]string{}, map[uint64]string{}, maphash.MakeSeed()
	}
	return nil
}

// file returns the file whose path folds to folded, and its key; where there is
// none, the key that it would have. Paths that only share a hash have keys next
// to each other.
func (s *Paths) file(folded string) (key uint64, p string, ok bool) {
	for key = maphash.String(s.seed, folded); ; key++ {
		if p, ok = s.files[key]; !ok || s.fold.path(p) == folded {
			return key, p, ok
		}
	}
}

// folderOf is file for a folder: it returns the first path below it. dir is the
// folder as it is written, which saves the folding of its like.
func (s *Paths) folderOf(dir, folded string) (key uint64, first string, ok bool) {
	for key = maphash.String(s.seed, folded); ; key++ {
		first, ok = s.folders[key]
		if !ok || isBelow(first, dir) || isBelow(s.fold.path(first), folded) {
			return key, first, ok
		}
	}
}

// isBelow reports whether a path lies in a folder, or one in it.
func isBelow(p, dir string) bool {
	return len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// addFolders adds the folders that p lies in: all, or with an error none.
func (s *Paths) addFolders(p, folded string) error {
	var fresh []uint64 // the keys of those that are not there yet, innermost first
	for dir, fold := parent(p), parent(folded); dir != ""; dir, fold = parent(dir), parent(fold) {
		if _, file, ok := s.file(fold); ok {
			return errorf(ErrInsecurePath, p, "lies below %s, which is a file", quotePath(file))
		}
		key, first, seen := s.folderOf(dir, fold)
		if seen && isBelow(first, dir) {
			break // and so are the folders around it
		}
		if seen {
			return errorf(ErrInsecurePath, p, "its folder differs from that of %s only in case or normalisation",
				quotePath(first))
		}
		fresh = append(fresh, key)
	}
	if len(s.folders)+len(fresh) > MaxFolders {
		return errorf(ErrLimit, p, "members lie in more than %d folders", MaxFolders)
	}
	for _, key := range fresh {
		s.folders[key] = p
	}
	return nil
}

// parent returns the folder that a clean path lies in, "" for the root.
func parent(p string) string {
	return p[:max(0, strings.LastIndexByte(p, '/'))]
}

// addFolder adds a folder that may be empty, as foreign zips list them. Unlike
// a file's, its name may come twice.
func (s *Paths) addFolder(p string) error {
	if err := s.begin(p); err != nil {
		return err
	}
	return s.addFolders(p+"/", s.fold.path(p)+"/")
}
