package place

import (
	"os"
	"path/filepath"
)

// What a Folder is filled with. Paths are slash-separated and relative to it;
// nothing reaches outside of it, whatever they hold. Everything that is made
// must not be there yet. Errors name the final path.

// Mkdir makes a folder with the mode 0755, whatever the umask.
func (d *Folder) Mkdir(path string) error {
	err := d.root.Mkdir(filepath.FromSlash(path), 0o755)
	if err == nil {
		err = chmodFolder(d.root, path)
	}
	return d.Explain("create", path, err)
}

// Create makes a file with the mode 0644, whatever the umask, and opens it for
// writing. Errors of the file are for [Folder.Explain].
func (d *Folder) Create(path string) (*os.File, error) {
	f, err := d.root.OpenFile(filepath.FromSlash(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, d.Explain("create", path, err)
	}
	if err := chmod(f, 0o644); err != nil {
		f.Close()
		return nil, d.Explain("create", path, err)
	}
	return f, nil
}

// Symlink makes a symlink. Where it points to is the caller's business: os.Root
// lets a target be anything, and whoever reads the folder later follows it.
func (d *Folder) Symlink(target, path string) error {
	return d.Explain("create", path, d.root.Symlink(filepath.FromSlash(target), filepath.FromSlash(path)))
}

// Explain is the function [Explain] for a path in the folder.
func (d *Folder) Explain(op, path string, err error) error {
	return Explain(op, filepath.Join(d.out.name, filepath.FromSlash(path)), err)
}
