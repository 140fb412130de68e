package place

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/hint"
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
	fresh   bool             // it was made just now
	locked  bool             // false: the file system has no locks
	ours    bool             // it says that it is ours, and so is a file NAME.partial beside it
	folders map[string]owner // what the text says, by identity
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
			err := o.errorf("%s exists, and this file system can't tell whether a process writes it", o.beside(base))
			return hint.With(err, "if none does, remove %s and %s", o.Partial(), o.beside(base))
		case errors.Is(err, ErrBusy):
			return o.busy()
		case errors.As(err, &not):
			return o.inTheWay(base, "was not made by carton-oci: it "+string(not))
		case err != nil && !errors.Is(err, errNoLocks): // without locks O_EXCL has to do
			return Explain("create", o.name, err)
		}
		o.journal = journal{File: f, fresh: fresh, locked: err == nil, ours: ours, folders: map[string]owner{}}
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
	lines = lines[:len(lines)-1] // the last is empty, or was cut off
	for _, base := range o.folderNames() {
		e, err := o.look(base)
		switch {
		case err != nil:
			return err
		case !ok || e.FileInfo == nil:
		case slices.Contains(lines, asideMark+e.id):
			o.journal.folders[e.id] = waiting
		case slices.Contains(lines, e.id):
			o.journal.folders[e.id] = ours
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
	for id, whose := range o.journal.folders {
		switch whose {
		case waiting:
			text += asideMark + id + "\n"
		case ours:
			text += id + "\n"
		case others:
		}
	}
	_, err := o.journal.WriteAt([]byte(text+strings.Repeat("\n", textBytes-len(text))), 0)
	return Explain("create", o.name, err)
}

// removeJournal removes it, unless something is left beside it that it says is ours,
// or that can't be looked at. Somebody who removed it has let another process begin
// its own.
func (o *output) removeJournal() {
	for _, base := range o.folderNames()[:2] {
		e, err := o.look(base)
		if err != nil || e.whose != others || e.is(o.made) {
			return
		}
	}
	base := o.partial() + journalSuffix
	open, err := o.journal.Stat()
	if named, nerr := o.parent.Lstat(base); err == nil && nerr == nil && os.SameFile(open, named) {
		o.parent.Remove(base)
	}
}

// mark writes into the journal whose a folder is. Where that fails, what is to be ours or
// to wait stays as it was; what is to be others' is that at once.
func (o *output) mark(id string, whose owner) error {
	was := o.journal.folders[id]
	if was == whose {
		return nil
	}
	o.journal.folders[id] = whose
	err := o.writeJournal()
	if err != nil && whose != others {
		o.journal.folders[id] = was
	}
	return err
}

// folderNames are the names that the folders have which the journal is about.
func (o *output) folderNames() []string {
	return []string{o.partial(), o.partial() + oldSuffix, o.base}
}

// owner says whose a file or folder beside the output is.
type owner int

const (
	others  owner = iota // somebody else's, or one that is not a folder
	ours                 // a folder that this package has made
	waiting              // a folder of the caller's that was about to lose its name
)

// entry is what has a name beside the output.
type entry struct {
	fs.FileInfo // nil for nothing
	// its identity: its inode, and when it was made, since the inode of what was removed is soon another's
	id    string
	whose owner
}

// is reports whether it is the file or folder that fi is of.
func (e entry) is(fi fs.FileInfo) bool {
	return e.FileInfo != nil && fi != nil && os.SameFile(e.FileInfo, fi)
}

// look says what has a name beside the output, and whose it is. What can't be looked
// at is an error, and not somebody else's: a disk that fails for a while takes nothing
// from its owner.
func (o *output) look(base string) (entry, error) {
	fi, err := o.parent.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}, nil
	}
	when := ""
	if err == nil {
		when, err = born(o.dir, base)
	}
	if err != nil {
		return entry{}, Explain("look at", o.beside(base), err)
	}
	e := entry{FileInfo: fi, id: inode(fi) + when}
	if whose := o.journal.folders[e.id]; fi.IsDir() && (whose == waiting || ownedByCaller(fi)) {
		e.whose = whose
	}
	return e, nil
}
