package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/localfile"
)

// Foreign says why the output name is not one that this package has made for the
// caller, "" where it may be: it and everything in it are files and folders, not
// symlinks where the output itself is meant, which belong to the caller or to root,
// give nobody the rights of another user, and can be written by nobody whom the
// umask does not let write to what the caller makes. Who else could write to an
// output may do so after it was verified.
func Foreign(name string, folder bool) (string, error) {
	o, err := newOutput(name, Options{})
	if err != nil {
		return "", err
	}
	defer o.close()
	fi, err := o.parent.Lstat(o.base)
	if err != nil {
		return "", Explain("open", name, err)
	}
	switch want := map[bool]string{true: "a folder", false: "a file"}[folder]; {
	case folder != fi.IsDir(), !folder && !fi.Mode().IsRegular():
		return fmt.Sprintf("is %s, want %s", localfile.Kind(fi.Mode()), want), nil
	case !folder:
		return foreign(fi, umask()), nil
	}
	root, err := o.parent.OpenRoot(o.base)
	if err != nil {
		return "", Explain("open", name, err)
	}
	defer root.Close()
	return foreignInside(root)
}

// foreignInside is Foreign of a folder and all that is in it.
func foreignInside(root *os.Root) (what string, err error) {
	mask := umask()
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if why := foreign(fi, mask); why != "" {
			if what = why; p != "." {
				what = fmt.Sprintf("holds %s, which %s", errtext.Quote(p), why)
			}
			return fs.SkipAll
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "changes while it is looked at", nil
	}
	return what, err
}

// foreign is Foreign of one file or folder.
func foreign(fi fs.FileInfo, mask os.FileMode) string {
	m := fi.Mode()
	switch {
	case !ownedByCaller(fi) && !ownedByRoot(fi):
		return "belongs to another user"
	case m&fs.ModeSymlink != 0:
		return ""
	case !m.IsDir() && !m.IsRegular():
		return "is " + localfile.Kind(m)
	case m.IsRegular() && m&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0:
		return fmt.Sprintf("has the mode %s", m)
	case m.Perm()&0o022&mask != 0:
		return fmt.Sprintf("can be written by others: its mode is %04o", m.Perm())
	}
	return ""
}
