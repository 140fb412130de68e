package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Folder is a folder on its way to its place.
type Folder struct {
	out      *output
	parent   *os.File        // the folder that holds it
	lock     held            // NAME.partial.lock; its File is nil when the folder is done with
	root     *os.Root        // NAME.partial
	journal  *os.File        // nil without Options.Resume
	made     map[string]bool // what the lock's file says: see lockMark
	recorded int             // bytes of the lock's file
	known    func(path string, folder bool) bool
	umask    os.FileMode
	stale    bool
	lost     bool // a sync has failed
	// replaced: the folder has its name, and there was another one before.
	replaced bool
}

// CreateFolder begins the folder name. An empty folder may be there already,
// and is replaced; one that is not empty only with Options.Replace and after
// [Folder.MayReplace], and never one that holds the current folder or the user's
// home. The errors are those of [Create].
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
	d, err := o.lockFolder()
	if err != nil {
		return nil, err
	}
	if err = d.readRecord(); err == nil {
		err = d.recover()
	}
	if err == nil {
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

// lockFolder locks the output for one process.
func (o *output) lockFolder() (*Folder, error) {
	parent, err := o.parent.Open(".")
	if err != nil {
		return nil, Explain("create", o.name, err)
	}
	lock, err := o.acquire(o.partial() + lockSuffix)
	if err != nil {
		parent.Close()
		return nil, err
	}
	return &Folder{out: o, parent: parent, lock: lock, umask: umask()}, nil
}

// recover ends what a process was killed over in the middle of [Folder.replace]: a
// folder of the caller's gets its name back where it was not looked at yet, and the
// new one is NAME.partial again. A NAME.partial.old that this package has not put
// there is left alone. The caller holds the lock.
func (d *Folder) recover() error {
	o := d.out
	for _, aside := range []string{o.partial(), o.partial() + asideSuffix} {
		fi, err := o.parent.Lstat(aside)
		if err != nil || !d.isAside(fi) {
			continue
		}
		switch named, err := o.parent.Lstat(o.base); {
		case errors.Is(err, fs.ErrNotExist):
			err = o.parent.Rename(aside, o.base)
			if err == nil {
				d.forget(fi)
			}
			return Explain("restore", o.name, err)
		case err == nil && d.isOurs(named):
			if err = d.moveBack(aside); err == nil {
				d.forget(fi)
			}
			return Explain("restore", o.name, err)
		}
	}
	aside := o.partial() + asideSuffix
	if fi, err := o.parent.Lstat(aside); err != nil || !d.isOurs(fi) {
		return nil //nolint:nilerr // nothing to end
	}
	return Explain("remove", o.beside(aside), d.removeOurs(aside))
}

// checkFolder judges what has the final name.
func (o *output) checkFolder() error {
	fi, err := o.check("a folder", fs.FileMode.IsDir)
	if fi == nil || err != nil {
		return err
	}
	if !o.replace && !o.isEmpty(o.base) {
		return o.folderExists()
	}
	if isMountPoint(o.parent, o.base) {
		return Explain("replace", o.name, syscall.EBUSY)
	}
	for _, in := range inUse() {
		if os.SameFile(fi, in.info) {
			return hint.With(&explained{fs.PathError{Op: "replace", Path: o.name, Err: errors.New("holds " + in.what)}},
				"give a folder below it, or another one")
		}
	}
	return nil
}

// folderExists is the error for a folder that is there already, and not empty.
func (o *output) folderExists() error {
	return hint.With(fmt.Errorf("%s: %w", o.name, ErrExist), "give a folder that is empty or not there yet")
}

// makePartial makes NAME.partial anew, or takes it over if it is ours. What a
// dead process left there is removed otherwise; symlinks in it are removed, not
// followed.
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
	case !d.isOurs(fi) && o.isEmpty(o.partial()): // perhaps of a process that was killed right behind Mkdir
		err = o.parent.Remove(o.partial())
	case !d.isOurs(fi):
		return o.inTheWay(o.partial(), "was not made by carton-oci")
	case o.resume && fi.Mode().Perm()&0o022&d.umask == 0:
		d.stale = true
	default:
		err = d.removeOurs(o.partial())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Explain("remove", o.beside(o.partial()), err)
	}
	if !d.stale {
		if err := o.parent.Mkdir(o.partial(), 0o700); err != nil {
			return Explain("create", o.name, err)
		}
	}
	d.root, err = o.parent.OpenRoot(o.partial())
	if err != nil {
		if !d.stale {
			o.parent.Remove(o.partial())
		}
		return Explain("create", o.name, err)
	}
	fi, err = d.root.Stat(".")
	switch {
	case err != nil:
		return Explain("create", o.name, err)
	case d.stale && !d.isOurs(fi), !ownedByCaller(fi):
		return o.swapped(o.partial())
	}
	return d.remember(fi)
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

// Commit gives the folder its final name, and the mode 0777 but for the umask,
// once everything in it is on the disk. When it returns an error Keep or Discard
// is still to be called.
func (d *Folder) Commit() error {
	o := d.out
	if err := chmodFolder(d.root, ".", 0o777&^d.umask); err != nil {
		return Explain("write", o.name, err)
	}
	if err := syncTree(d.root); err != nil {
		d.lost = true
		return Explain("write", o.name, err)
	}
	made, err := d.root.Stat(".")
	if err != nil {
		return Explain("write", o.name, err)
	}
	// Windows renames no folder that is open.
	d.root.Close()
	err = d.replace(made)
	if err != nil && !d.replaced {
		return err
	}
	// At once: a process that is killed in the sync would leave it for good.
	o.removeJournal(d.journal)
	if synced := o.syncParent(); err == nil {
		err = synced
	}
	if named := o.sameFile(o.base, made); err == nil {
		err = named
	}
	if err == nil {
		err = o.stillThere()
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

// Discard removes what was written. After Commit has succeeded it does nothing,
// so it can be deferred.
func (d *Folder) Discard() error {
	if d.lock.File == nil {
		return nil
	}
	d.root.Close()
	err := d.removeOurs(d.out.partial())
	d.out.removeJournal(d.journal)
	d.unlock()
	defer d.out.parent.Close()
	return Explain("remove", d.out.beside(d.out.partial()), err)
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
