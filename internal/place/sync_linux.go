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

func startWriteback(f *os.File, off, n int64) {
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) {
		_ = unix.SyncFileRange(int(fd), off, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}
