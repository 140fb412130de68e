package place

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Known says what may be removed of a folder that is to be replaced. It is given
// the folder, and returns a function that is asked for every file and folder in
// it, by a path with slashes.
type Known func(old fs.FS) func(path string, folder bool) bool

// maxStrangers is how many files an error names.
const maxStrangers = 3

// CheckReplace returns an error that names the first few things in the folder
// name that known does not know; nil where there are none, or no such folder.
func CheckReplace(name string, known Known) error {
	o, err := newOutput(name, Options{Replace: true})
	if err != nil {
		return err
	}
	defer o.close()
	if err := o.checkFolder(); err != nil {
		return err
	}
	_, err = o.judge(known)
	return err
}

// MayReplace says what Commit may remove of the folder that has the final name.
// Where it holds anything else the error is [ErrExist], now and at Commit.
// Without this call Commit replaces only an empty folder.
func (d *Folder) MayReplace(known Known) error {
	if !d.replace {
		return nil
	}
	var err error
	d.known, err = d.judge(known)
	return err
}

// judge looks for strangers in the folder that has the final name.
func (o *output) judge(known Known) (func(string, bool) bool, error) {
	root, err := o.parent.OpenRoot(o.base)
	if errors.Is(err, fs.ErrNotExist) {
		return known(embed.FS{}), nil // which holds nothing
	}
	if err != nil {
		return nil, Explain("replace", o.name, err)
	}
	defer root.Close()
	is := known(root.FS())
	return is, o.refuseStrangers(root, is)
}

// refuseStrangers is the error for a folder that holds what known does not know.
func (o *output) refuseStrangers(root *os.Root, known func(string, bool) bool) error {
	names, err := strangers(root, known)
	if err != nil {
		return Explain("replace", o.name, err)
	}
	if len(names) == 0 {
		return nil
	}
	more := ""
	if len(names) > maxStrangers {
		names, more = names[:maxStrangers], " and more"
	}
	for i := range names {
		names[i] = errtext.Quote(names[i])
	}
	err = &exists{fmt.Sprintf("%s: holds what no pull has put there: %s%s", o.name, strings.Join(names, ", "), more)}
	return hint.With(err, "move that away, or give a folder that is empty or not there yet")
}

// exists is ErrExist in words of its own.
type exists struct{ text string }

func (e *exists) Error() string { return e.text }
func (e *exists) Unwrap() error { return ErrExist }

// strangers returns what a folder holds that known does not know: a few at most.
// Of a folder that is unknown only the folder is named.
func strangers(root *os.Root, known func(string, bool) bool) ([]string, error) {
	var found []string
	err := fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == ".":
			return nil
		case e.IsDir() && known(p, true) && !isMountPoint(root, filepath.FromSlash(p)):
			return nil
		case !e.IsDir() && known(p, false) && e.Type()&^fs.ModeSymlink == 0:
			return nil
		}
		name := p
		if e.IsDir() {
			name += "/"
		}
		if found = append(found, name); len(found) > maxStrangers {
			return fs.SkipAll
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}

// putInPlace moves NAME.partial, which is made, to NAME: in one step where the
// system can, else so that one of NAME and NAME.partial.old is there at any time,
// which the next process restores if this one is killed. The old folder's content
// is looked at once more when nobody can find it by NAME any longer.
func (d *Folder) putInPlace() error {
	o := d.output
	if err := o.sameFile(o.partial()); err != nil {
		return err
	}
	if _, err := o.check("a folder", fs.FileMode.IsDir); err != nil {
		return err
	}
	old, err := o.look(o.base)
	if err != nil {
		return err
	}
	if old.FileInfo == nil || !o.replace || o.isEmpty(o.base) {
		return o.renameFolder()
	}
	if d.known == nil {
		return o.folderExists()
	}
	if err := o.mark(old.id, waiting); err != nil {
		return err
	}
	aside := o.partial()
	err = errors.ErrUnsupported
	if !o.inSteps {
		err = swap(o.dir, o.partial(), o.base)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		aside += oldSuffix
		err = o.moveAside(aside)
	}
	if err != nil {
		_ = o.mark(old.id, others) // it has its name
		return Explain("replace", o.name, err)
	}
	return d.removeOld(aside, old)
}

// moveAside is swap in two steps.
func (o *output) moveAside(aside string) error {
	if _, err := o.parent.Lstat(aside); err == nil {
		return o.inTheWay(aside, "was not made by carton-oci")
	}
	if err := o.rename(o.base, aside); err != nil {
		return err
	}
	err := o.rename(o.partial(), o.base)
	if err != nil {
		if back := o.rename(aside, o.base); back != nil {
			err = errors.Join(err, back)
		}
	}
	return err
}

// moveBack undoes what putInPlace did.
func (o *output) moveBack(aside string) error {
	if aside == o.partial() {
		return swap(o.dir, aside, o.base)
	}
	if err := o.rename(o.base, o.partial()); err != nil {
		return err
	}
	return o.rename(aside, o.base)
}

// removeOld removes the folder that was replaced: what is known of it, and
// nothing else. Where something else has come into it meanwhile it gets its name
// back.
func (d *Folder) removeOld(aside string, old entry) error {
	o := d.output
	root, err := o.parent.OpenRoot(aside)
	if err != nil {
		return Explain("remove", o.beside(aside), err)
	}
	defer root.Close()
	if fi, err := root.Stat("."); err != nil || !old.is(fi) {
		return errors.Join(err, o.swapped(aside))
	}
	if err := o.refuseStrangers(root, d.known); err != nil {
		root.Close()
		if back := d.moveBack(aside); back != nil {
			return errors.Join(err, Explain("restore", o.name, back))
		}
		_ = o.mark(old.id, others) // it has its name
		return err
	}
	if err := o.mark(old.id, ours); err != nil {
		return err
	}
	d.replaced = true
	if old.Mode().Perm()&0o700 != 0o700 {
		root.Chmod(".", 0o700) //nolint:errcheck // then removing says why
	}
	err = removeKnown(root, ".", d.known)
	root.Close()
	if err == nil {
		err = o.parent.Remove(aside)
	}
	if err != nil {
		_ = o.mark(old.id, others) // what is left of it is its user's
		err = Explain("remove", o.beside(aside), err)
		return hint.With(err, "%s is in its place; what is left of the old folder is in %s", o.name, o.beside(aside))
	}
	return nil
}

// removeKnown empties a folder of what is known. A folder in it that holds
// anything else stays, which is an error.
func removeKnown(root *os.Root, dir string, known func(string, bool) bool) error {
	names, err := readNames(root, dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, base := range names {
		name := path.Join(dir, base)
		fi, err := root.Lstat(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		if !known(name, fi.IsDir()) {
			return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrExist}
		}
		if fi.IsDir() {
			if fi.Mode().Perm()&0o700 != 0o700 {
				err = root.Chmod(filepath.FromSlash(name), 0o700) // its files are to go
			}
			if err == nil {
				err = removeKnown(root, name, known)
			}
		}
		if err == nil {
			err = root.Remove(filepath.FromSlash(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isEmpty reports whether base is a folder that holds nothing.
func (o *output) isEmpty(base string) bool {
	d, err := o.parent.Open(base)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(1)
	return len(names) == 0 && errors.Is(err, io.EOF)
}

// renameFolder moves NAME.partial to NAME, where there must be nothing or an
// empty folder: that much every system sees to.
func (o *output) renameFolder() error {
	if o.parent.Rename(o.partial(), o.base) == nil {
		return nil
	}
	fi, err := o.parent.Lstat(o.base)
	if err != nil { // nothing is there: somebody else is in the way
		return Explain("create", o.name, o.rename(o.partial(), o.base))
	}
	if !fi.IsDir() {
		return o.exists()
	}
	// Windows renames to no name that is taken, even by an empty folder. Remove
	// takes no folder that holds anything.
	if err := o.parent.Remove(o.base); errors.Is(err, fs.ErrExist) {
		return o.folderExists()
	} else if err != nil {
		return Explain("create", o.name, err)
	}
	return Explain("create", o.name, o.rename(o.partial(), o.base))
}

// Stranger returns the first thing in a folder that known does not know, "" where
// there is none.
func Stranger(dir string, known func(path string, folder bool) bool) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	names, err := strangers(root, known)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}
