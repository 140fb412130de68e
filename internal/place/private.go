package place

import (
	"errors"
	"io/fs"
	"os"
)

// PrivateDir opens a folder that only the caller may look into, made where it is
// not there: mode 0700, which one that was laxer gets. One that is no folder, or
// that belongs to another user, is an error.
func PrivateDir(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	fi, err := root.Stat(".")
	if err == nil && !ownedByCaller(fi) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("belongs to another user")}
	}
	if err == nil && fi.Mode().Perm()&0o077 != 0 {
		err = root.Chmod(".", 0o700)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// Lock takes an exclusive lock on an open file, without waiting. It ends when f
// is closed, or with the process. A file that is locked already, through another
// open file, is [ErrBusy]; any other error means that there is no telling.
func Lock(f *os.File) error { return lock(f) }
