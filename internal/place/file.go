package place

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// File is a file on its way to its place. WriteAt and ReadAt may be called from
// many goroutines at once; everything else from one.
type File struct {
	out     *output
	f       held // its File is nil when it is done with
	journal *os.File
	writing sync.Mutex
	lost    bool // a sync has failed
}

// Create begins the file name. Where it exists and is not to be replaced the
// error is [ErrExist]; where another process is writing it, [ErrBusy]; where it
// is a symlink, [ErrSymlink].
func Create(name string, opts Options) (*File, error) {
	if name != "" && os.IsPathSeparator(name[len(name)-1]) {
		return nil, hint.With(&fs.PathError{Op: "create", Path: name, Err: fs.ErrInvalid}, "name a file, not a folder")
	}
	o, err := newOutput(name, opts)
	if err != nil {
		return nil, err
	}
	f, err := o.createFile()
	if err != nil {
		o.parent.Close()
		return nil, err
	}
	return f, nil
}

func (o *output) createFile() (*File, error) {
	if err := o.checkFile(); err != nil {
		return nil, err
	}
	h, err := o.acquire(o.partial())
	if err != nil {
		return nil, err
	}
	f := &File{out: o, f: h}
	// Again: who held the lock may have put the file there.
	if err = o.checkFile(); err == nil {
		f.journal, err = o.openJournal(h.fresh)
	}
	if err == nil && !o.resume {
		err = Explain("create", o.name, h.Truncate(0))
	}
	if err != nil {
		if h.fresh {
			o.parent.Remove(o.partial())
		}
		if f.journal != nil {
			f.journal.Close()
		}
		h.Close()
		return nil, err
	}
	return f, nil
}

// checkFile judges what has the final name.
func (o *output) checkFile() error {
	fi, err := o.check("a file", fs.FileMode.IsRegular)
	if err == nil && fi != nil && !o.replace {
		return o.exists()
	}
	return err
}

// Name returns the final name, as it was given to Create.
func (f *File) Name() string { return f.out.name }

// Stale reports whether the file holds what an earlier process left: with
// Options.Resume only.
func (f *File) Stale() bool { return f.out.resume && !f.f.fresh }

// Partial returns the name that the file has until Commit.
func (f *File) Partial() string { return f.out.beside(f.out.partial()) }

// Journal returns the file beside it that says what the content is; nil without
// Options.Resume. It is empty unless the file is Stale, and is removed with it.
func (f *File) Journal() *os.File {
	if !f.out.resume {
		return nil // it says whose the file is, and nothing of its content
	}
	return f.journal
}

// WriteAt writes at an offset, as io.WriterAt says. Its error names the final
// name.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	// Writers of one file wait for each other in the kernel, and spin there.
	f.writing.Lock()
	defer f.writing.Unlock()
	n, err := f.f.WriteAt(p, off)
	return n, Explain("write", f.out.name, err)
}

// ReadAt reads back what was written, as io.ReaderAt says.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if err == io.EOF { //nolint:errorlint // os.File returns it bare
		return n, err
	}
	return n, Explain("read", f.out.name, err)
}

// StartWriteback asks the system to begin to bring n written bytes from off to the
// disk, and does not wait for it: what is there in time is not waited for by
// [File.Commit]. It promises nothing, and does nothing where the system can't.
func (f *File) StartWriteback(off, n int64) { startWriteback(f.f.File, off, n) }

// StartWriteback is the same for a file of a [Folder].
func StartWriteback(f *os.File, off, n int64) { startWriteback(f, off, n) }

// Truncate sets the size in bytes.
func (f *File) Truncate(size int64) error {
	return Explain("write", f.out.name, f.f.Truncate(size))
}

// Clear makes the file an empty one.
func (f *File) Clear() error { return f.Truncate(0) }

// Unsynced reports whether Commit could not bring the content to the disk.
func (f *File) Unsynced() bool { return f.lost }

// Commit gives the file its final name, and the mode 0666 but for the umask, once
// its content is on the disk. When it
// returns an error Keep or Discard is still to be called. A failed sync is not tried
// again: the system may have dropped what it could not write. Where only the
// sync of the folder failed, the complete file is in its place, but the name
// may not survive a crash.
func (f *File) Commit() error {
	o := f.out
	if err := chmod(f.f.File, 0o666&^umask()); err != nil {
		return Explain("write", o.name, err)
	}
	if err := f.f.Sync(); err != nil {
		f.lost = true
		return Explain("write", o.name, err)
	}
	made, err := f.f.Stat()
	if err != nil {
		return Explain("write", o.name, err)
	}
	if err := o.sameFile(o.partial(), made); err != nil {
		return err
	}
	if err := o.rename(); err != nil {
		return err
	}
	if err := o.sameFile(o.base, made); err != nil {
		_ = o.parent.Rename(o.base, o.partial()) // what took the partial's name is none of ours
		return err
	}
	// At once: a process that is killed in the sync would leave it for good.
	o.removeJournal(f.journal)
	// The lock goes last, when no other process can find NAME.partial. All
	// content is synced: closing has nothing more to tell.
	if err = o.syncParent(); err == nil {
		err = o.stillThere()
	}
	f.close()
	return err
}

// Keep leaves what was written to a process that takes it over with
// Options.Resume, where the file system has locks; else it discards it. It
// reports whether it was left. After Commit or Discard it does nothing.
func (f *File) Keep() (bool, error) {
	if f.f.File == nil {
		return false, nil
	}
	if !f.f.locked || !f.out.resume || f.lostName() {
		return false, f.Discard()
	}
	chmod(f.f.File, 0o600) //nolint:errcheck // Commit may have changed it, and failed then
	f.close()
	return true, nil
}

// lostName reports whether somebody has removed NAME.partial, or given the name to
// something else: nobody finds it again.
func (f *File) lostName() bool {
	open, err := f.f.Stat()
	if err != nil {
		return false
	}
	named, err := f.out.parent.Lstat(f.out.partial())
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(named, open)
}

// Discard removes what was written. After Commit has succeeded it does nothing,
// so it can be deferred.
func (f *File) Discard() error {
	if f.f.File == nil {
		return nil
	}
	var err error
	if open, serr := f.f.Stat(); serr != nil || f.out.sameFile(f.out.partial(), open) == nil {
		err = f.out.parent.Remove(f.out.partial())
	}
	f.out.removeJournal(f.journal)
	f.close()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return Explain("remove", f.out.beside(f.out.partial()), err)
}

func (f *File) close() {
	if f.journal != nil {
		f.journal.Close()
	}
	f.f.Close()
	f.f.File = nil
	f.out.parent.Close()
}

// rename moves NAME.partial to NAME.
func (o *output) rename() error {
	if o.replace {
		return Explain("create", o.name, o.parent.Rename(o.partial(), o.base))
	}
	err := renameNew(o.parent, o.partial(), o.base)
	if errors.Is(err, errors.ErrUnsupported) {
		err = linkNew(o.parent, o.partial(), o.base)
	}
	if errors.Is(err, fs.ErrExist) {
		return o.exists()
	}
	return Explain("create", o.name, err)
}

// linkNew is renameNew in two steps, for systems that have no such thing: a
// second name can be given to a file only where it is free. Where a file can't
// have two names either, it looks first and renames then.
func linkNew(parent *os.Root, from, to string) error {
	err := parent.Link(from, to)
	if err == nil {
		return parent.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := parent.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return parent.Rename(from, to)
}
