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
	*output
	f       *os.File
	writing sync.Mutex
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
	f := &File{output: o}
	if err := f.begin(); err != nil {
		o.abandon()
		return nil, err
	}
	return f, nil
}

func (f *File) begin() error {
	err := f.checkFile()
	if err == nil {
		err = f.lock()
	}
	if err == nil { // again: who held the lock may have put the file there
		err = f.checkFile()
	}
	if err == nil {
		err = f.openPartial()
	}
	if err != nil {
		return err
	}
	if f.stale = !f.created && f.resume; f.stale {
		return nil
	}
	if err := f.f.Truncate(0); err != nil {
		return Explain("create", f.name, err)
	}
	return f.beginJournal()
}

// openPartial makes NAME.partial, or opens it if it is ours: an empty one beside a
// journal that says nothing is of a process that was killed right behind making it.
func (f *File) openPartial() error {
	fi, err := f.leftover(fs.FileMode.IsRegular, func(fi fs.FileInfo) bool {
		return f.journal.ours || fi.Size() == 0 && !f.journal.fresh
	})
	if err != nil {
		return err
	}
	if fi != nil {
		if err := f.open(os.O_RDWR); err != nil {
			return err
		}
		if !os.SameFile(f.made, fi) {
			return f.swapped(f.partial())
		}
		if alone(f.made, umask()) {
			return nil
		}
		// Its other name may be an output that a process was killed over between
		// linking and removing this name: writing to it would change that. And what
		// somebody else may write to could change when it has been read.
		f.f.Close()
		if err := f.parent.Remove(f.partial()); err != nil {
			return Explain("remove", f.Partial(), err)
		}
	}
	return f.open(os.O_RDWR | os.O_CREATE | os.O_EXCL)
}

func (f *File) open(flag int) error {
	file, err := f.parent.OpenFile(f.partial(), flag, 0o600)
	if err == nil {
		f.f, f.content, f.created = file, file, flag&os.O_CREATE != 0
		f.made, err = file.Stat()
	}
	return Explain("create", f.name, err)
}

// checkFile judges what has the final name.
func (f *File) checkFile() error {
	fi, err := f.check("a file", fs.FileMode.IsRegular)
	if err == nil && fi != nil && !f.replace {
		return f.exists()
	}
	return err
}

// WriteAt writes at an offset, as io.WriterAt says. Its error names the final
// name.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	// Writers of one file wait for each other in the kernel, and spin there.
	f.writing.Lock()
	defer f.writing.Unlock()
	n, err := f.f.WriteAt(p, off)
	return n, Explain("write", f.name, err)
}

// ReadAt reads back what was written, as io.ReaderAt says.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if err == io.EOF {
		return n, err
	}
	return n, Explain("read", f.name, err)
}

// StartWriteback asks the system to begin to bring n written bytes from off to the
// disk, and does not wait for it: what is there in time is not waited for by
// [File.Commit]. It promises nothing, and does nothing where the system can't.
func (f *File) StartWriteback(off, n int64) { StartWriteback(f.f, off, n) }

// Truncate sets the size in bytes.
func (f *File) Truncate(size int64) error {
	return Explain("write", f.name, f.f.Truncate(size))
}

// Clear makes the file an empty one.
func (f *File) Clear() error { return f.Truncate(0) }

// Commit gives the file its final name, and the mode 0666 but for the umask, once
// its content is on the disk. When it returns an error Keep or Discard is still to
// be called. A failed sync is not tried again: the system may have dropped what it
// could not write. Where only the sync of the folder failed, the complete file is in
// its place, but the name may not survive a crash.
func (f *File) Commit() error {
	if err := unlessNoModes(f.f.Chmod(0o666 &^ umask())); err != nil {
		return Explain("write", f.name, err)
	}
	if err := f.f.Sync(); err != nil {
		f.lost = true
		return Explain("write", f.name, err)
	}
	if err := f.sameFile(f.partial()); err != nil {
		return err
	}
	if err := f.takeName(); err != nil {
		return err
	}
	err := f.sameFile(f.base)
	if errors.Is(err, errSwapped) {
		_ = f.rename(f.base, f.partial()) // what took the partial's name is none of ours
		return err
	}
	if ended := f.finish(); err == nil {
		err = ended
	}
	return err
}

// Keep leaves what was written to a process that takes it over with
// Options.Resume, where the file system has locks; else it discards it. It
// reports whether it was left. After Commit or Discard it does nothing.
func (f *File) Keep() (bool, error) {
	if f.ended() {
		return false, nil
	}
	if !f.keepable() {
		return false, f.Discard()
	}
	f.f.Chmod(0o600) //nolint:errcheck // Commit may have changed it, and failed then
	f.close()
	return true, nil
}

// Discard removes what was written. After Commit has succeeded it does nothing,
// so it can be deferred.
func (f *File) Discard() error {
	if f.ended() {
		return nil
	}
	var err error
	if f.sameFile(f.partial()) == nil {
		f.f.Close() // or the name stays until then, on Windows and what is not NTFS
		err = f.parent.Remove(f.partial())
	}
	f.end()
	return Explain("remove", f.Partial(), err)
}

// takeName moves NAME.partial to NAME.
func (f *File) takeName() error {
	if f.replace {
		return Explain("create", f.name, f.rename(f.partial(), f.base))
	}
	err := patiently(func() error { return renameNew(f.dir, f.partial(), f.base) })
	if errors.Is(err, errors.ErrUnsupported) {
		err = linkNew(f.parent, f.partial(), f.base)
	}
	if errors.Is(err, fs.ErrExist) {
		return f.exists()
	}
	return Explain("create", f.name, err)
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
