//go:build unix

package place

import (
	"errors"
	"os"
	"syscall"
)

// syncFolder makes the names in a folder survive a crash, where the file system
// has a way to ask for that.
func syncFolder(d *os.File) error {
	err := d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil
	}
	return err
}

// chmod sets a mode, where the file system has modes: some that are made of
// something else (FAT, buckets) refuse to change what they don't keep.
func chmod(f *os.File, mode os.FileMode) error {
	err := f.Chmod(mode)
	for _, no := range []error{syscall.EPERM, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EINVAL} {
		if errors.Is(err, no) {
			return nil
		}
	}
	return err
}

// chmodFolder sets the mode of a folder.
func chmodFolder(root *os.Root, path string, mode os.FileMode) error {
	d, err := root.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return chmod(d, mode)
}
