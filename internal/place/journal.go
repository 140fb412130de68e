package place

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// journalMark is what a journal begins with, if it is not empty. What has its
// name and begins with anything else is not ours, and stays.
const journalMark = "carton-oci partial"

// openJournal opens NAME.partial.journal, which says that NAME.partial is ours. The
// caller has locked the output. A journal of ours without what it is about begins
// anew; one that can't be opened or looked at is an error, and stays.
func (o *output) openJournal(fresh bool) (*os.File, error) {
	base := o.partial() + journalSuffix
	if !fresh {
		f, err := o.staleJournal(base)
		if f != nil && !o.resume {
			err = Explain("create", o.name, f.Truncate(0))
		}
		if f != nil || err != nil {
			return f, err
		}
	}
	fi, err := o.parent.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, Explain("open", o.beside(base), err)
	default:
		ours, err := o.ownJournal()
		if err == nil && !ours {
			return nil, o.inTheWay(base, "was not made by carton-oci, but is "+kind(fi.Mode()))
		}
		if err == nil {
			err = o.parent.Remove(base)
		}
		// Whoever had the lock before may be done with its output, and remove its
		// journal only now.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, Explain("remove", o.beside(base), err)
		}
	}
	f, err := o.parent.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f, Explain("create", o.name, err)
}

// ownJournal reports whether there is a journal that this package has made.
func (o *output) ownJournal() (bool, error) {
	fi, err := o.parent.Lstat(o.partial() + journalSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !fi.Mode().IsRegular() || !ownedByCaller(fi) {
		return false, err
	}
	f, err := o.parent.Open(o.partial() + journalSuffix)
	if err != nil {
		return false, err
	}
	defer f.Close()
	open, err := f.Stat()
	return err == nil && os.SameFile(open, fi) && beginsWith(f, journalMark), err
}

// beginsWith reports whether a file begins with mark, or is empty.
func beginsWith(f io.ReaderAt, mark string) bool {
	b := make([]byte, len(mark))
	n, err := f.ReadAt(b, 0)
	return n == 0 && errors.Is(err, io.EOF) || string(b[:n]) == mark
}

// staleJournal opens a journal that was there before, nil where it is not to be
// used.
func (o *output) staleJournal(base string) (*os.File, error) {
	fi, err := o.parent.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, Explain("open", o.beside(base), err)
	case !usable(fi, umask()):
		return nil, nil
	}
	f, err := o.parent.OpenFile(base, os.O_RDWR, 0)
	if err != nil {
		return nil, Explain("open", o.beside(base), err)
	}
	open, err := f.Stat()
	if err != nil || !os.SameFile(open, fi) || !usable(open, umask()) || !beginsWith(f, journalMark) {
		f.Close()
		return nil, Explain("open", o.beside(base), err)
	}
	return f, nil
}

// removeJournal removes the journal, if that is what has its name: once NAME is
// in its place another process may have begun its own.
func (o *output) removeJournal(f *os.File) {
	if f == nil {
		return
	}
	base := o.partial() + journalSuffix
	open, err := f.Stat()
	named, nerr := o.parent.Lstat(base)
	if err == nil && nerr == nil && os.SameFile(open, named) {
		o.parent.Remove(base)
	}
}
