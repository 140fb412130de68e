package place

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
)

// Misfit is the error for a name that a file system can't hold: it refuses it, or
// makes another one of it.
type Misfit struct {
	Path string // in the folder
	Err  error  // in the system's words
}

func (m *Misfit) Error() string { return "create " + m.Path + ": " + m.Err.Error() }
func (m *Misfit) Unwrap() error { return m.Err }

// Fits wants the folder's file system to hold names: of files, and of a symlink unless
// that is "". Their folders must be there. The error is a [*Misfit]. It is the file
// system itself that is asked: everything is made, found under its name among all
// others, and removed again.
func (d *Folder) Fits(files []string, symlink string) (err error) {
	var made []string
	defer func() {
		for _, p := range made {
			if rerr := d.root.Remove(filepath.FromSlash(p)); err == nil {
				err = d.Explain("remove", p, rerr)
			}
		}
	}()
	for _, p := range files {
		f, err := d.root.OpenFile(filepath.FromSlash(p), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case d.stale && errors.Is(err, fs.ErrExist):
		case err != nil:
			return d.misfit(p, err)
		default:
			f.Close()
			made = append(made, p)
		}
	}
	if symlink != "" {
		if err := d.root.Symlink("x", filepath.FromSlash(symlink)); err != nil {
			return &Misfit{symlink, cause(err)}
		}
		made = append(made, symlink)
	}
	return d.sameNames(files)
}

// sameNames looks for files under their names, and for the folders that they lie in.
func (d *Folder) sameNames(files []string) error {
	names := map[string][]string{} // by folder
	for _, p := range files {
		for at := p; at != "."; at = path.Dir(at) {
			dir := path.Dir(at)
			if names[dir] == nil {
				list, err := readNames(d.root, filepath.FromSlash(dir))
				if err != nil {
					return d.Explain("read", dir, err)
				}
				slices.Sort(list)
				names[dir] = list
			}
			if _, ok := slices.BinarySearch(names[dir], path.Base(at)); !ok {
				return &Misfit{p, errors.New("it gets another name there")}
			}
		}
	}
	return nil
}

// misfit tells a name that can't be from a disk that is full, and the like.
func (d *Folder) misfit(p string, err error) error {
	for _, other := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE,
		fs.ErrPermission, fs.ErrExist,
	} {
		if errors.Is(err, other) {
			return d.Explain("create", p, err)
		}
	}
	return &Misfit{p, cause(err)}
}
