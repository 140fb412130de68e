package place

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// Who may do what is in access control lists here, and in no modes; there are no
// inodes to tell, and no umask. Renames are journalled, and a folder can't be synced.

const modeBits = 0

func ownedByCaller(fs.FileInfo) bool { return true }
func ownedByRoot(fs.FileInfo) bool   { return true }
func callerIsRoot() bool             { return false }
func links(fs.FileInfo) uint64       { return 1 }
func inode(fs.FileInfo) string       { return "folder" }
func syncFolder(*os.File) error      { return nil }
func unlessNoModes(error) error      { return nil }
func setUmask() os.FileMode          { return 0 }

// lock takes an exclusive lock that ends with f, or with the process. Windows
// enforces locks, so one byte far behind any content is locked.
func lock(f *os.File) error {
	at := &windows.Overlapped{Offset: 0xFFFFFFFE, OffsetHigh: 0x7FFFFFFF}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, at)
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return ErrBusy
	case errors.Is(err, windows.ERROR_INVALID_FUNCTION), errors.Is(err, windows.ERROR_NOT_SUPPORTED):
		return errNoLocks
	}
	return err
}
