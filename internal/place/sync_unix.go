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

// chmodFolder gives a folder the mode 0755, whatever the umask.
func chmodFolder(root *os.Root, path string) error {
	d, err := root.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Chmod(0o755)
}
