package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// What a Folder is filled with. Paths are slash-separated and relative to it;
// nothing reaches outside of it, whatever they hold. Everything that is made
// must not be there yet. Errors name the final path.

// Mkdir makes a folder with the mode 0777 but for the umask. In a Stale folder it
// may be there. The error may be a [*Misfit].
func (d *Folder) Mkdir(path string) error {
	err := d.root.Mkdir(filepath.FromSlash(path), 0o777)
	if d.stale && errors.Is(err, fs.ErrExist) {
		if fi, serr := d.root.Lstat(filepath.FromSlash(path)); serr == nil && fi.IsDir() {
			err = nil
		}
	}
	if err == nil {
		return nil
	}
	return d.misfit(path, err)
}

// Create makes a file with the mode 0666 but for the umask, and opens it for
// reading and writing. In a Stale folder it may be there, with what [Folder.Prune]
// has left in it. Errors of the file are for [Folder.Explain].
func (d *Folder) Create(path string) (*os.File, error) {
	name := filepath.FromSlash(path)
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if d.stale && errors.Is(err, fs.ErrExist) {
		f, err = d.reopen(name, err)
	}
	if err != nil {
		return nil, d.Explain("create", path, err)
	}
	return f, nil
}

// reopen opens a file of an earlier process, err where it is none to be used.
func (d *Folder) reopen(name string, err error) (*os.File, error) {
	if fi, lerr := d.root.Lstat(name); lerr != nil || !usable(fi, d.umask) {
		return nil, err
	}
	f, oerr := d.root.OpenFile(name, os.O_RDWR, 0)
	if oerr != nil {
		return nil, oerr
	}
	if fi, serr := f.Stat(); serr != nil || !usable(fi, d.umask) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// usable reports whether a file's content can be taken over.
func usable(fi fs.FileInfo, mask os.FileMode) bool {
	return fi.Mode().IsRegular() && ownedByCaller(fi) && alone(fi, mask)
}

// Prune removes what an earlier process left, but for the files that keep says
// yes to, if they are plain, have one name, and belong to the caller alone.
func (d *Folder) Prune(keep func(path string) bool) error {
	_, err := d.prune(".", keep)
	return d.Explain("clear", ".", err)
}

// prune returns whether a folder is empty now.
func (d *Folder) prune(dir string, keep func(path string) bool) (empty bool, err error) {
	names, err := readNames(d.root, dir)
	if err != nil {
		return false, err
	}
	empty = true
	for _, base := range names {
		name := filepath.Join(dir, base)
		fi, err := d.root.Lstat(name)
		if err != nil {
			return false, err
		}
		if fi.IsDir() && ownedByCaller(fi) && fi.Mode().Perm()&0o022&d.umask == 0 {
			if gone, err := d.prune(name, keep); err != nil || !gone {
				empty = false
				if err != nil {
					return false, err
				}
				continue
			}
		} else if usable(fi, d.umask) && keep(filepath.ToSlash(name)) {
			empty = false
			continue
		}
		if err := d.root.RemoveAll(name); err != nil {
			return false, err
		}
	}
	return empty, nil
}

// Symlink makes a symlink. Where it points to is the caller's business: os.Root
// lets a target be anything, and whoever reads the folder later follows it.
func (d *Folder) Symlink(target, path string) error {
	return d.Explain("create", path, d.root.Symlink(filepath.FromSlash(target), filepath.FromSlash(path)))
}

// Explain is the function [Explain] for a path in the folder.
func (d *Folder) Explain(op, path string, err error) error {
	return Explain(op, filepath.Join(d.name, filepath.FromSlash(path)), err)
}
