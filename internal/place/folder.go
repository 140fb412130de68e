package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Folder is a folder on its way to its place.
type Folder struct {
	*output
	root  *os.Root // NAME.partial
	known func(path string, folder bool) bool
	umask os.FileMode
	id    string // of what was made
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
	d := &Folder{output: o, umask: umask()}
	if err := d.begin(); err != nil {
		o.abandon()
		return nil, err
	}
	return d, nil
}

func (d *Folder) begin() error {
	err := d.lock()
	if err == nil {
		err = d.recover()
	}
	if err == nil {
		err = d.checkFolder()
	}
	if err == nil {
		err = d.openPartial()
	}
	if err == nil && !d.stale {
		err = d.beginJournal()
	}
	if err == nil {
		err = d.mark(d.id, ours)
	}
	return err
}

// recover ends what a process was killed over in the middle of [Folder.putInPlace]: a
// folder of the caller's gets its name back where it was not looked at yet, and the
// new one is NAME.partial again. A NAME.partial.old that this package has not put
// there is left alone. The caller holds the lock.
func (o *output) recover() error {
	for _, aside := range o.folderNames()[:2] {
		old, err := o.look(aside)
		if err != nil {
			return err
		}
		if old.whose != waiting {
			continue
		}
		named, err := o.look(o.base)
		switch {
		case err != nil:
			return err
		case named.FileInfo == nil:
			err = o.rename(aside, o.base)
		case named.whose != ours:
			continue
		default:
			err = o.moveBack(aside)
		}
		if err == nil {
			_ = o.mark(old.id, others) // else who comes next looks again
		}
		return Explain("restore", o.name, err)
	}
	return Explain("remove", o.beside(o.partial()+oldSuffix), o.removeOurs(o.partial()+oldSuffix))
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
	// What nobody means to replace.
	current, _ := os.Getwd()
	home, _ := os.UserHomeDir()
	for _, used := range [][2]string{{current, "holds the current folder"}, {home, "holds the user's home"}} {
		if used[0] != "" && inside(used[0], fi) {
			return hint.With(&explained{fs.PathError{Op: "replace", Path: o.name, Err: errors.New(used[1])}},
				"give a folder below it, or another one")
		}
	}
	return nil
}

// folderExists is the error for a folder that is there already, and not empty.
func (o *output) folderExists() error {
	return hint.With(fmt.Errorf("%s: %w", o.name, ErrExist), "give a folder that is empty or not there yet")
}

// openPartial makes NAME.partial anew, or takes it over if it is ours: an empty one
// is of a process that was killed right behind making it. What a dead process left
// there is removed otherwise; symlinks in it are removed, not followed.
func (d *Folder) openPartial() error {
	before, err := d.look(d.partial())
	if err != nil {
		return err
	}
	fi, err := d.leftover(fs.FileMode.IsDir, func(fs.FileInfo) bool {
		return before.whose == ours || !d.journal.fresh && d.isEmpty(d.partial())
	})
	if err != nil {
		return err
	}
	d.stale = fi != nil && before.whose == ours && d.resume && fi.Mode().Perm()&0o022&d.umask == 0
	if fi != nil && !d.stale {
		if before.whose == ours {
			err = d.removeOurs(d.partial())
		} else {
			err = d.parent.Remove(d.partial())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Explain("remove", d.Partial(), err)
		}
	}
	if !d.stale {
		if err := d.parent.Mkdir(d.partial(), 0o700); err != nil {
			return Explain("create", d.name, err)
		}
		d.created = true
	}
	if d.root, err = d.parent.OpenRoot(d.partial()); err != nil {
		return Explain("create", d.name, err)
	}
	d.content = d.root
	if d.made, err = d.root.Stat("."); err != nil {
		return Explain("create", d.name, err)
	}
	named, err := d.look(d.partial())
	if err == nil && (!named.is(d.made) || d.stale && named.whose != ours || !ownedByCaller(d.made)) {
		err = d.swapped(d.partial())
	}
	d.id = named.id
	return err
}

// Clear removes everything in the folder.
func (d *Folder) Clear() error { return d.Prune(func(string) bool { return false }) }

// Commit gives the folder its final name, and the mode 0777 but for the umask,
// once everything in it is on the disk. When it returns an error Keep or Discard
// is still to be called.
func (d *Folder) Commit() error {
	if err := unlessNoModes(d.root.Chmod(".", 0o777&^d.umask)); err != nil {
		return Explain("write", d.name, err)
	}
	if err := syncTree(d.root); err != nil {
		d.lost = true
		return Explain("write", d.name, err)
	}
	d.root.Close() // Windows renames no folder that is open
	err := d.putInPlace()
	if err != nil && !d.replaced {
		return err
	}
	if err == nil {
		err = d.sameFile(d.base)
	}
	if ended := d.finish(); err == nil {
		err = ended
	}
	return err
}

// Keep leaves what was written to a process that takes it over with
// Options.Resume, where the file system has locks; else it discards it. It
// reports whether it was left. After Commit or Discard it does nothing.
func (d *Folder) Keep() (bool, error) {
	if d.ended() {
		return false, nil
	}
	if !d.keepable() {
		return false, d.Discard()
	}
	d.root.Close()
	d.parent.Chmod(d.partial(), 0o700) //nolint:errcheck // Commit may have changed it, and failed then
	d.close()
	return true, nil
}

// Discard removes what was written. After Commit has succeeded it does nothing,
// so it can be deferred.
func (d *Folder) Discard() error {
	if d.ended() {
		return nil
	}
	d.root.Close()
	err := d.removeOurs(d.partial())
	d.end()
	return Explain("remove", d.Partial(), err)
}

// removeOurs removes the folder base and all that is in it, if it is ours: what
// is in it by way of the open folder, whatever happens to its name meanwhile.
func (o *output) removeOurs(base string) error {
	root, err := o.parent.OpenRoot(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	fi, err := root.Stat(".")
	if err != nil {
		return err
	}
	named, err := o.look(base)
	if err != nil || named.whose != ours || !named.is(fi) {
		return err
	}
	names, err := readNames(root, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	root.Close() // Windows removes no folder that is open
	return o.parent.Remove(base)
}

// readNames returns the names in a folder.
func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
