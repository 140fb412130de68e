package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// errNoLocks: the file system cannot lock files.
var errNoLocks = errors.New("file system has no locks")

// held is a file of the output's folder that no other process uses.
type held struct {
	*os.File
	fresh  bool // it was made just now
	locked bool // false: the file system has no locks
}

// acquire opens a file of the output's folder for reading and writing, made if
// it is not there, and locks it. The file that it returns still had the name
// when it was locked: a process that finishes renames or removes the file
// before it lets go of the lock.
func (o *output) acquire(base string) (held, error) {
	// Every round that finds nothing to use has seen another process finish.
	for range 100 {
		f, err := o.parent.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		fresh := err == nil
		if errors.Is(err, fs.ErrExist) {
			f, err = o.openStale(base)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return held{}, Explain("create", o.name, err)
		}
		h := held{f, fresh, true}
		ok, err := o.claim(&h, base)
		if ok {
			return h, nil
		}
		f.Close()
		if err != nil {
			return held{}, err
		}
	}
	return held{}, o.busy()
}

// openStale opens a file that was there before. It must be a plain file that
// belongs to the caller.
func (o *output) openStale(base string) (*os.File, error) {
	fi, err := o.parent.Lstat(base)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, o.inTheWay(base, "is "+kind(fi.Mode()))
	}
	if !ownedByCaller(fi) {
		return nil, o.inTheWay(base, "belongs to another user")
	}
	return o.parent.OpenFile(base, os.O_RDWR, 0)
}

// claim locks an open file and reports whether it can be used. False without an
// error means that it has lost its name meanwhile.
func (o *output) claim(h *held, base string) (bool, error) {
	err := lock(h.File)
	switch {
	case errors.Is(err, ErrBusy):
		return false, o.busy()
	case errors.Is(err, errNoLocks) && h.fresh:
		h.locked = false
		return true, nil // O_EXCL has to do
	case errors.Is(err, errNoLocks):
		return false, o.inTheWay(base, "exists, and this file system can't tell whether a process writes it")
	case err != nil:
		return false, Explain("lock", o.name, err)
	}
	open, err := h.Stat()
	if err != nil {
		return false, Explain("lock", o.name, err)
	}
	named, err := o.parent.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !os.SameFile(open, named)) {
		return false, nil
	}
	if err != nil {
		return false, Explain("lock", o.name, err)
	}
	if !ownedByCaller(open) {
		return false, o.inTheWay(base, "belongs to another user")
	}
	if h.fresh {
		return true, nil
	}
	ours, err := o.isOurs(h.File, base, open)
	if err != nil {
		return false, Explain("open", o.beside(base), err)
	}
	if !ours {
		return false, o.inTheWay(base, "was not made by carton-oci")
	}
	if !alone(open, umask()) {
		// Its other name may be an output that a process was killed over between
		// linking and removing this name: writing to it would change that. And what
		// somebody else may write to could change when it has been read.
		if err := o.parent.Remove(base); err != nil {
			return false, Explain("remove", o.beside(base), err)
		}
		return false, nil
	}
	return true, nil
}

// isOurs reports whether a file that was there before is one that this package has
// left: an empty one, a lock, and what a journal beside it or its second name says
// is a partial.
func (o *output) isOurs(f *os.File, base string, fi fs.FileInfo) (bool, error) {
	if fi.Size() == 0 {
		return true, nil
	}
	if base != o.partial() {
		return beginsWith(f, lockMark), nil
	}
	if named, err := o.parent.Lstat(o.base); err == nil && os.SameFile(named, fi) {
		return true, nil
	}
	return o.ownJournal()
}

// alone reports whether nobody else can change a file: it has one name, and only
// its owner may write to it, and those whom the umask lets.
func alone(fi fs.FileInfo, mask os.FileMode) bool {
	return links(fi) == 1 && fi.Mode().Perm()&0o022&mask == 0
}

func (o *output) busy() error {
	return hint.With(fmt.Errorf("%s: %w", o.name, ErrBusy), "wait for it, or choose another name")
}

// inTheWay is the error for a NAME.partial that cannot be taken over.
func (o *output) inTheWay(base, what string) error {
	path := o.beside(base)
	return hint.With(&explained{fs.PathError{Op: "create", Path: o.name, Err: fmt.Errorf("%s %s", path, what)}},
		"move or remove %s, or choose another name for the output", path)
}

// sameFile wants the name base to be of the file or folder that is open.
func (o *output) sameFile(base string, open fs.FileInfo) error {
	named, err := o.parent.Lstat(base)
	if err == nil && os.SameFile(named, open) {
		return nil
	}
	return o.swapped(base)
}

// swapped is the error for a name that somebody has given to something else.
func (o *output) swapped(base string) error {
	err := &explained{fs.PathError{Op: "create", Path: o.name, Err: fmt.Errorf("%s was swapped for something else meanwhile", o.beside(base))}}
	return hint.With(err, "don't use what is there; others may write to %s: choose a folder that is yours", filepath.Dir(o.name))
}
