package place

import (
	"errors"
	"io/fs"
	"os"
)

// openJournal opens NAME.partial.journal, nil where none is kept. The caller has
// locked the output. A journal without what it is about, and anything that is no
// plain file of the caller's alone, is removed; one that can't be opened or looked
// at is an error, and stays.
func (o *output) openJournal(fresh bool) (*os.File, error) {
	base := o.partial() + journalSuffix
	if o.resume && !fresh {
		f, err := o.staleJournal(base)
		if f != nil || err != nil {
			return f, err
		}
	}
	if err := o.parent.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, o.inTheWay(base, "can't be removed")
	}
	if !o.resume {
		return nil, nil
	}
	f, err := o.parent.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f, Explain("create", o.name, err)
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
	case !usable(fi):
		return nil, nil
	}
	f, err := o.parent.OpenFile(base, os.O_RDWR, 0)
	if err != nil {
		return nil, Explain("open", o.beside(base), err)
	}
	open, err := f.Stat()
	if err != nil || !os.SameFile(open, fi) || !usable(open) {
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
