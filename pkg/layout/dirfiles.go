package layout

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/carton-oci/carton-oci/internal/localfile"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// A folder's files are regular files in folders of its own: a symlink, a pipe or
// a device is refused before anything is read of it, since whoever made the
// folder could have whatever the user can read sent to a registry.

// openFile opens a file of the folder.
func (d *Dir) openFile(name string) (*os.File, error) {
	root, err := localfile.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := localfile.OpenItself(root, name)
	if errors.Is(err, localfile.ErrKind) {
		return nil, d.notRegular(root, name)
	}
	return f, d.leavesNot(name, err)
}

// statFile looks at a file of the folder, fs.ErrNotExist for none.
func (d *Dir) statFile(name string) (fs.FileInfo, error) {
	root, err := localfile.OpenRoot(d.path)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, d.leavesNot(name, err)
	case !info.Mode().IsRegular():
		return nil, d.notRegular(root, name)
	}
	return info, nil
}

func (d *Dir) notRegular(root *os.Root, name string) error {
	kind := "something else"
	if info, err := root.Lstat(name); err == nil {
		kind = localfile.Kind(info.Mode())
	}
	return errorf(ErrFormat, filepath.Join(d.path, name), "is %s, want a regular file", kind)
}

// leavesNot says of an [os.Root]'s error that a folder on the way is a symlink.
func (d *Dir) leavesNot(name string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bad := d.checkFolders(); bad != nil {
		return bad
	}
	return fmt.Errorf("open %s: %w", filepath.Join(d.path, name), err)
}

// checkFolders wants the folders of blobs to be folders, where they are there.
func (d *Dir) checkFolders() error {
	for _, name := range []string{ocispec.ImageBlobsDir, blobFolder} {
		info, err := os.Lstat(filepath.Join(d.path, name))
		if err == nil && !info.IsDir() {
			return errorf(ErrFormat, filepath.Join(d.path, name), "is %s, want a folder", localfile.Kind(info.Mode()))
		}
	}
	return nil
}

// readFile reads a small file of the folder.
func (d *Dir) readFile(name string) ([]byte, error) {
	f, err := d.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxManifestBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxManifestBytes {
		return nil, errorf(ErrLimit, filepath.Join(d.path, name), "is over %d bytes", MaxManifestBytes)
	}
	return b, nil
}
