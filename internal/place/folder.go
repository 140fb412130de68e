package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/hint"
)

// Folder is a folder on its way to its place.
type Folder struct {
	out     *output
	lock    held     // NAME.partial.lock; its File is nil when the folder is done with
	root    *os.Root // NAME.partial
	journal *os.File // nil without Options.Resume
	stale   bool
	lost    bool // a sync has failed
}

// CreateFolder begins the folder name. An empty folder may be there already,
// and is replaced; one that is not empty only with Options.Replace, and never
// one that holds the current folder or the user's home. The errors are those of
// [Create].
func CreateFolder(name string, opts Options) (*Folder, error) {
	o, err := newOutput(name, opts)
	if err != nil {
		return nil, err
	}
	d, err := o.createFolder()
	if err != nil {
		o.parent.Close()
		return nil, err
	}
	return d, nil
}

func (o *output) createFolder() (*Folder, error) {
	lockName := o.partial() + lockSuffix
	lock, err := o.acquire(lockName)
	if err != nil {
		return nil, err
	}
	d := &Folder{out: o, lock: lock}
	if err = o.recover(); err == nil {
		err = o.checkFolder()
	}
	if err == nil {
		err = d.makePartial()
	}
	if err == nil {
		d.journal, err = o.openJournal(!d.stale)
	}
	if err != nil {
		if d.root != nil {
			d.root.Close()
			if !d.stale {
				o.parent.Remove(o.partial())
			}
		}
		d.unlock()
		return nil, err
	}
	return d, nil
}

// recover ends what a process was killed over in the middle of [Folder.replace].
// The caller holds the lock.
func (o *output) recover() error {
	aside := o.partial() + asideSuffix
	if _, err := o.parent.Lstat(aside); err != nil {
		return nil //nolint:nilerr // nothing to end
	}
	_, err := o.parent.Lstat(o.base)
	if errors.Is(err, fs.ErrNotExist) {
		return Explain("restore", o.name, o.parent.Rename(aside, o.base))
	}
	return Explain("remove", o.beside(aside), o.parent.RemoveAll(aside))
}

// checkFolder judges what has the final name.
func (o *output) checkFolder() error {
	fi, err := o.check("a folder", fs.FileMode.IsDir)
	if fi == nil || err != nil {
		return err
	}
	if !o.replace {
		d, err := o.parent.Open(o.base)
		if err != nil {
			return Explain("create", o.name, err)
		}
		defer d.Close()
		if names, _ := d.Readdirnames(1); len(names) > 0 {
			return o.exists()
		}
	}
	for _, in := range inUse() {
		if os.SameFile(fi, in.info) {
			return hint.With(&explained{fs.PathError{Op: "replace", Path: o.name, Err: errors.New("holds " + in.what)}},
				"give a folder below it, or another one")
		}
	}
	return nil
}

// makePartial makes NAME.partial anew, or takes it over. What a dead process left
// there is removed otherwise; symlinks in it are removed, not followed.
func (d *Folder) makePartial() error {
	o := d.out
	fi, err := o.parent.Lstat(o.partial())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Explain("create", o.name, err)
	case !fi.IsDir():
		return o.inTheWay(o.partial(), "is "+kind(fi.Mode()))
	case !ownedByCaller(fi):
		return o.inTheWay(o.partial(), "belongs to another user")
	case o.resume && fi.Mode().Perm()&0o022 == 0:
		d.stale = true
	default:
		if err := o.parent.RemoveAll(o.partial()); err != nil {
			return Explain("remove", o.beside(o.partial()), err)
		}
	}
	if !d.stale {
		if err := o.parent.Mkdir(o.partial(), 0o700); err != nil {
			return Explain("create", o.name, err)
		}
	}
	d.root, err = o.parent.OpenRoot(o.partial())
	if err != nil && !d.stale {
		o.parent.Remove(o.partial())
	}
	return Explain("create", o.name, err)
}

// Name returns the final name, as it was given to CreateFolder.
func (d *Folder) Name() string { return d.out.name }

// Stale reports whether the folder holds what an earlier process left: with
// Options.Resume only.
func (d *Folder) Stale() bool { return d.stale }

// Partial returns the name that the folder has until Commit.
func (d *Folder) Partial() string { return d.out.beside(d.out.partial()) }

// Journal returns the file beside it that says what the content is; nil without
// Options.Resume. It is empty unless the folder is Stale, and is removed with it.
func (d *Folder) Journal() *os.File { return d.journal }

// Clear removes everything in the folder.
func (d *Folder) Clear() error { return d.Prune(func(string) bool { return false }) }

// Unsynced reports whether Commit could not bring the content to the disk.
func (d *Folder) Unsynced() bool { return d.lost }

// Commit gives the folder its final name and the mode 0755 once everything in
// it is on the disk. When it returns an error Keep or Discard is still to be called.
func (d *Folder) Commit() error {
	o := d.out
	if err := chmodFolder(d.root, "."); err != nil {
		return Explain("write", o.name, err)
	}
	if err := syncTree(d.root); err != nil {
		d.lost = true
		return Explain("write", o.name, err)
	}
	// Windows renames no folder that is open.
	d.root.Close()
	if err := d.replace(); err != nil {
		return err
	}
	// At once: a process that is killed in the sync would leave it for good.
	o.removeJournal(d.journal)
	err := o.syncParent()
	// After a swap the old folder has the partial name.
	if rest := o.parent.RemoveAll(o.partial()); err == nil {
		err = Explain("remove", o.beside(o.partial()), rest)
	}
	d.unlock()
	o.parent.Close()
	return err
}

// Keep leaves what was written to a process that takes it over with
// Options.Resume, where the file system has locks; else it discards it. It
// reports whether it was left. After Commit or Discard it does nothing.
func (d *Folder) Keep() (bool, error) {
	if d.lock.File == nil {
		return false, nil
	}
	if !d.lock.locked || d.journal == nil {
		return false, d.Discard()
	}
	d.root.Close()
	d.out.parent.Chmod(d.out.partial(), 0o700) //nolint:errcheck // Commit may have changed it, and failed then
	d.unlock()
	d.out.parent.Close()
	return true, nil
}

// replace moves NAME.partial to NAME, in one step where the system can, else so
// that one of NAME and NAME.partial.old is there at any time, which the next
// process restores if this one is killed.
func (d *Folder) replace() error {
	o := d.out
	fi, err := o.check("a folder", fs.FileMode.IsDir)
	if err != nil {
		return err
	}
	if fi == nil || !o.replace {
		return o.renameFolder()
	}
	err = swap(o.parent, o.partial(), o.base)
	if !errors.Is(err, errors.ErrUnsupported) {
		return Explain("replace", o.name, err)
	}
	return o.replaceInSteps()
}

func (o *output) replaceInSteps() error {
	aside := o.partial() + asideSuffix
	if err := o.parent.Rename(o.base, aside); err != nil {
		return Explain("replace", o.name, err)
	}
	if err := o.parent.Rename(o.partial(), o.base); err != nil {
		if back := o.parent.Rename(aside, o.base); back != nil {
			err = errors.Join(err, back)
		}
		return Explain("replace", o.name, err)
	}
	return Explain("remove", o.beside(aside), o.parent.RemoveAll(aside))
}

// renameFolder moves NAME.partial to NAME, where there must be nothing or an
// empty folder: that much every system sees to.
func (o *output) renameFolder() error {
	err := o.parent.Rename(o.partial(), o.base)
	if err == nil {
		return nil
	}
	fi, statErr := o.parent.Lstat(o.base)
	if statErr != nil {
		return Explain("create", o.name, err)
	}
	if !fi.IsDir() {
		return o.exists()
	}
	// Windows renames to no name that is taken, even by an empty folder. Remove
	// takes no folder that holds anything.
	if err := o.parent.Remove(o.base); errors.Is(err, fs.ErrExist) {
		return o.exists()
	} else if err != nil {
		return Explain("create", o.name, err)
	}
	return Explain("create", o.name, o.parent.Rename(o.partial(), o.base))
}

// Discard removes what was written. After Commit has succeeded it does nothing,
// so it can be deferred.
func (d *Folder) Discard() error {
	if d.lock.File == nil {
		return nil
	}
	d.root.Close()
	err := d.out.parent.RemoveAll(d.out.partial())
	d.out.removeJournal(d.journal)
	d.unlock()
	defer d.out.parent.Close()
	return Explain("remove", d.out.beside(d.out.partial()), err)
}

// unlock removes the lock's file before it lets go of the lock, so that nobody
// locks a file that is about to lose its name.
func (d *Folder) unlock() {
	d.out.parent.Remove(d.out.partial() + lockSuffix)
	d.lock.Close()
	d.lock.File = nil
	if d.journal != nil {
		d.journal.Close()
	}
}

type usedFolder struct {
	info fs.FileInfo
	what string
}

// inUse returns the folders that nobody means to replace: those that hold the
// current folder and the user's home.
func inUse() []usedFolder {
	var used []usedFolder
	add := func(dir string, err error, what string) {
		for err == nil && dir != "" {
			if fi, err := os.Stat(dir); err == nil {
				used = append(used, usedFolder{fi, what})
			}
			if dir == filepath.Dir(dir) {
				return
			}
			dir = filepath.Dir(dir)
		}
	}
	cwd, err := os.Getwd()
	add(cwd, err, "the current folder")
	home, err := os.UserHomeDir()
	add(home, err, "the user's home")
	return used
}
