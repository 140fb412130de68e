package place

import (
	"errors"
	"io/fs"
	"os"

	"github.com/carton-oci/carton-oci/internal/localfile"
)

// errNoLocks: the file system cannot lock files.
var errNoLocks = errors.New("file system has no locks")

// notOurs says why a file is none that this package would have made.
type notOurs string

func (e notOurs) Error() string { return string(e) }

// Lock opens a file of a folder for reading and writing, made with the mode 0600 if
// it is not there (fresh), and locks it: until it is closed, or the process ends. The
// file that it returns had the name when it was locked, since who finishes with one
// removes it before letting go of the lock; and it is a regular one of the caller's.
// Where another process has locked it the error is [ErrBusy].
func Lock(dir *os.Root, name string) (f *os.File, fresh bool, err error) {
	f, fresh, err = acquire(dir, name)
	if errors.Is(err, errNoLocks) {
		f.Close()
		f = nil
	}
	return f, fresh, err
}

// acquire is Lock, but for a file system without locks: the file is open then.
func acquire(dir *os.Root, name string) (f *os.File, fresh bool, err error) {
	// Every round that finds nothing to use has seen another process finish.
	for range 100 {
		f, err = dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		fresh = err == nil
		if errors.Is(err, fs.ErrExist) {
			f, err = openOwn(dir, name)
		}
		if err == nil {
			err = lockNamed(dir, name, f)
			if err == nil || errors.Is(err, errNoLocks) {
				return f, fresh, err
			}
			f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
	}
	return nil, false, ErrBusy
}

// openOwn opens a file that was there before.
func openOwn(dir *os.Root, name string) (*os.File, error) {
	fi, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, notOurs("is " + localfile.Kind(fi.Mode())) // such as a pipe, which would not even open
	case !ownedByCaller(fi):
		return nil, notOurs("belongs to another user")
	}
	return dir.OpenFile(name, os.O_RDWR, 0)
}

// lockNamed locks an open file. fs.ErrNotExist says that it has lost its name
// meanwhile.
func lockNamed(dir *os.Root, name string, f *os.File) error {
	if err := lock(f); err != nil {
		return err
	}
	open, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := dir.Lstat(name)
	switch {
	case err != nil:
		return err
	case !os.SameFile(open, named):
		return fs.ErrNotExist
	case !ownedByCaller(open):
		return notOurs("belongs to another user")
	}
	return nil
}

// Holder says which process is writing the output name, as far as this system
// tells: "" for none that is known.
func Holder(name string) string {
	fi, err := os.Stat(name + partialSuffix + journalSuffix)
	if err != nil {
		return ""
	}
	return lockedBy(fi)
}
