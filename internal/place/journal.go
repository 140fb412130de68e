package place

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// NAME.partial.journal is the one file that says what lies beside NAME. Its first
// 4 KiB are text, filled up with empty lines, and what follows is the caller's:
//
//	carton-oci partial
//	IDENTITY            of a folder beside it: it and all in it may be removed
//	aside IDENTITY      of a folder that was replaced: it is to get its name back
//	…
//
// A folder's identity stays when it is renamed. Who finds NAME.partial, or
// NAME.partial.old, and not its identity in the journal, has found something else of
// that name. A folder that is being replaced is the caller's until it was looked at
// once more behind its name.
const (
	journalMark = "carton-oci partial\n"
	asideMark   = "aside "
	textBytes   = 4 << 10
)

// journal is the open file.
type journal struct {
	*os.File
	fresh   bool            // it was made just now
	locked  bool            // false: the file system has no locks
	ours    bool            // it says that it is ours, and so is a file NAME.partial beside it
	folders map[string]bool // what the text says
}

// Journal is what of NAME.partial.journal is the caller's.
type Journal = interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
}

// behindText is a file as its bytes behind the text.
type behindText struct{ f *os.File }

func (b behindText) ReadAt(p []byte, off int64) (int, error) { return b.f.ReadAt(p, off+textBytes) }

func (b behindText) WriteAt(p []byte, off int64) (int, error) { return b.f.WriteAt(p, off+textBytes) }

func (b behindText) Truncate(size int64) error { return b.f.Truncate(size + textBytes) }

// Journal returns where the caller may say what the content is; nil without
// Options.Resume. It is empty unless the output is Stale, and is removed with it.
func (o *output) Journal() Journal {
	if !o.resume {
		return nil
	}
	return behindText{o.journal.File}
}

// lock locks the output for one process, and reads what the journal says.
func (o *output) lock() error {
	base := o.partial() + journalSuffix
	for ours := false; ; ours = o.journal.ours {
		f, fresh, err := acquire(o.parent, base)
		var not notOurs
		switch {
		case errors.Is(err, errNoLocks) && !fresh:
			f.Close()
			return o.inTheWay(base, "exists, and this file system can't tell whether a process writes it")
		case errors.Is(err, ErrBusy):
			return o.busy()
		case errors.As(err, &not):
			return o.inTheWay(base, "was not made by carton-oci: it "+string(not))
		case err != nil && !errors.Is(err, errNoLocks): // without locks O_EXCL has to do
			return Explain("create", o.name, err)
		}
		o.journal = journal{File: f, fresh: fresh, locked: err == nil, ours: ours, folders: map[string]bool{}}
		if fresh {
			return nil
		}
		if err := o.readJournal(); err != nil {
			return err
		}
		fi, err := f.Stat()
		if err == nil && alone(fi, umask()) {
			return nil
		}
		// Somebody else could write to it, and change what it says when that was read.
		if err == nil {
			err = o.parent.Remove(base)
		}
		if err != nil {
			return Explain("remove", o.beside(base), err)
		}
		f.Close()
	}
}

// readJournal reads the text that a dead process has written.
func (o *output) readJournal() error {
	base := o.partial() + journalSuffix
	b, err := io.ReadAll(io.NewSectionReader(o.journal, 0, textBytes))
	if err != nil {
		return Explain("read", o.beside(base), err)
	}
	text, ok := strings.CutPrefix(string(b), journalMark)
	if !ok && !strings.HasPrefix(journalMark, string(b)) { // a full disk may cut it off
		return o.inTheWay(base, "was not made by carton-oci")
	}
	o.journal.ours = ok
	lines := strings.Split(text, "\n")
	for _, base := range o.folderNames() {
		fi, err := o.parent.Lstat(base)
		if err != nil {
			continue
		}
		for _, line := range []string{o.identity(fi), asideMark + o.identity(fi)} {
			if ok && slices.Contains(lines[:len(lines)-1], line) { // the last may be cut off
				o.journal.folders[line] = true
			}
		}
	}
	return nil
}

// beginJournal makes it one that says that NAME.partial is ours, and nothing of its
// content.
func (o *output) beginJournal() error {
	if !o.journal.ours || o.journal.fresh {
		if err := o.writeJournal(); err != nil {
			return err
		}
	}
	if o.journalled() {
		return Explain("create", o.name, o.journal.Truncate(textBytes))
	}
	return nil
}

// journalled reports whether the journal says anything of the content.
func (o *output) journalled() bool {
	fi, err := o.journal.Stat()
	return err != nil || fi.Size() > textBytes
}

// writeJournal is one write over what was there: a process that is killed, or a disk
// that is full, leaves the one or the other.
func (o *output) writeJournal() error {
	text := journalMark
	for id := range o.journal.folders {
		text += id + "\n"
	}
	_, err := o.journal.WriteAt([]byte(text+strings.Repeat("\n", textBytes-len(text))), 0)
	return Explain("create", o.name, err)
}

// removeJournal removes it, unless something is left beside it that it says is ours.
// Somebody who removed it has let another process begin its own.
func (o *output) removeJournal() {
	for _, base := range o.folderNames()[:2] {
		fi, err := o.parent.Lstat(base)
		if err == nil && (o.made != nil && os.SameFile(fi, o.made) || o.isOurs(fi) || o.isAside(fi)) {
			return
		}
	}
	base := o.partial() + journalSuffix
	open, err := o.journal.Stat()
	if named, nerr := o.parent.Lstat(base); err == nil && nerr == nil && os.SameFile(open, named) {
		o.parent.Remove(base)
	}
}

// remember writes a folder's identity into the journal: it and all that is in it may
// be removed.
func (o *output) remember(fi fs.FileInfo) error {
	id := o.identity(fi)
	if o.journal.folders[id] && !o.journal.folders[asideMark+id] {
		return nil
	}
	delete(o.journal.folders, asideMark+id)
	o.journal.folders[id] = true
	return o.writeJournal()
}

// setAside writes that a folder of the caller's is about to lose its name.
func (o *output) setAside(fi fs.FileInfo) error {
	o.journal.folders[asideMark+o.identity(fi)] = true
	return o.writeJournal()
}

// isAside reports whether a folder of the caller's was about to lose its name.
func (o *output) isAside(fi fs.FileInfo) bool {
	return fi.IsDir() && o.journal.folders[asideMark+o.identity(fi)]
}

// forget takes it out again: from now on the folder is its owner's.
func (o *output) forget(fi fs.FileInfo) {
	delete(o.journal.folders, o.identity(fi))
	delete(o.journal.folders, asideMark+o.identity(fi))
	o.writeJournal() //nolint:errcheck // removeJournal removes it
}

// folderNames are the names that the folders have which the journal is about.
func (o *output) folderNames() []string {
	return []string{o.partial(), o.partial() + oldSuffix, o.base}
}

// isOurs reports whether this package has made the folder that fi is of.
func (o *output) isOurs(fi fs.FileInfo) bool {
	return fi.IsDir() && ownedByCaller(fi) && o.journal.folders[o.identity(fi)]
}

// identity names a folder that has one of the names that this package gives: its
// inode, and when it was made, since the inode of a folder that somebody has removed
// is soon another's.
func (o *output) identity(fi fs.FileInfo) string {
	for _, base := range o.folderNames() {
		if named, err := o.parent.Lstat(base); err == nil && os.SameFile(named, fi) {
			return inode(fi) + born(o.dir, base)
		}
	}
	return inode(fi) + " elsewhere"
}
