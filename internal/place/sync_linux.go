package place

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll syncs the file system that root is on, and reports whether it could.
// It fails for any file of it that could not be written (since Linux 5.8).
func syncAll(root *os.Root) (bool, error) {
	d, err := root.Open(".")
	if err != nil {
		return true, err
	}
	defer d.Close()
	err = unix.Syncfs(int(d.Fd()))
	if errors.Is(err, unix.ENOSYS) {
		return false, nil
	}
	return true, err
}
