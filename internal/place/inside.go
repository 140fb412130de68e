package place

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Inside reports whether a file or folder that is to be made under the name would
// lie in the folder dir, or be dir, which may also be a file: whatever symlinks, "..", mounts and letters of
// another case lead there. What does not exist yet of name's path is made below
// what does.
func Inside(name, dir string) bool {
	want, err := os.Stat(dir)
	return err == nil && inside(name, want)
}

// inside is Inside of a folder that is open.
func inside(name string, dir fs.FileInfo) bool {
	at, err := filepath.Abs(name)
	if err != nil {
		return false
	}
	// The nearest folder of the path that exists, without symlinks: its parents are
	// those that the path has there.
	for {
		resolved, err := filepath.EvalSymlinks(at)
		if err == nil {
			at = resolved
			break
		}
		if at == filepath.Dir(at) {
			return false
		}
		at = filepath.Dir(at)
	}
	for {
		if fi, err := os.Stat(at); err == nil && os.SameFile(fi, dir) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
		at = filepath.Dir(at)
	}
}
