package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/localfile"
)

// PrivateDir opens a folder that only the caller may write to, made with the mode
// 0700 where it is not there. One that is a symlink, that belongs to another user
// or that others may write to is an error, and stays as it is.
func PrivateDir(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	parent, err := localfile.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	named, err := parent.Lstat(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, refuseDir(path, "is "+localfile.Kind(named.Mode()))
	}
	root, err := parent.OpenRoot(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	open, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, open):
		err = refuseDir(path, "was put in another's place meanwhile")
	case !ownedByCaller(open):
		err = refuseDir(path, "belongs to another user")
	case open.Mode().Perm()&0o022&modeBits != 0:
		err = refuseDir(path, fmt.Sprintf("has the mode %04o, and others may write to it", open.Mode().Perm()))
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

func refuseDir(path, why string) error {
	return &fs.PathError{Op: "open", Path: path, Err: errors.New(why)}
}

// IsPrivate reports whether a file is a regular one that belongs to the caller, has
// one name and no mode bits for anybody else.
func IsPrivate(fi fs.FileInfo) bool {
	return fi.Mode().IsRegular() && ownedByCaller(fi) && links(fi) == 1 && fi.Mode().Perm()&0o077&modeBits == 0
}

// alone reports whether nobody else can change a file: it has one name, and only
// its owner may write to it, and those whom the umask lets.
func alone(fi fs.FileInfo, mask os.FileMode) bool {
	return links(fi) == 1 && fi.Mode().Perm()&0o022&mask == 0
}
