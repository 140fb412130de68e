//go:build unix

package place

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// modeBits are the mode bits that mean something here.
const modeBits = 0o777

// stat is what the system says of a file; of one that is none of the system's, that it
// is nobody's.
func stat(fi fs.FileInfo) *syscall.Stat_t {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st
	}
	return &syscall.Stat_t{Uid: math.MaxUint32, Nlink: 1}
}

// ownedByCaller reports whether a file belongs to who runs this process.
func ownedByCaller(fi fs.FileInfo) bool { return int(stat(fi).Uid) == os.Geteuid() }

// ownedByRoot reports whether a file belongs to who may change any file anyway.
func ownedByRoot(fi fs.FileInfo) bool { return stat(fi).Uid == 0 }

func callerIsRoot() bool { return os.Geteuid() == 0 }

// links returns how many names a file has.
func links(fi fs.FileInfo) uint64 {
	return uint64(stat(fi).Nlink) //nolint:unconvert // its type differs from system to system
}

// inode names a folder for as long as it exists, whatever its name.
func inode(fi fs.FileInfo) string { return fmt.Sprintf("inode %d", stat(fi).Ino) }

// lock takes an exclusive lock that ends with f, or with the process.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrBusy
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK):
			return errNoLocks
		}
		return err
	}
}

// inUse returns false: who has a file open is in nobody's way.
func inUse(error) bool { return false }

// syncFolder makes the names in a folder survive a crash, where the file system
// has a way to ask for that.
func syncFolder(d *os.File) error {
	err := d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil
	}
	return err
}

// unlessNoModes is the error of setting a mode, nil where the file system has none: some
// make modes of something else (FAT, buckets), and refuse to change what they don't keep.
func unlessNoModes(err error) error {
	for _, no := range []error{syscall.EPERM, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EINVAL} {
		if errors.Is(err, no) {
			return nil
		}
	}
	return err
}

var settingUmask sync.Mutex

// setUmask reads the umask in the one way that every system has: by setting it.
// A file that is made meanwhile is its owner's alone.
func setUmask() os.FileMode {
	settingUmask.Lock()
	defer settingUmask.Unlock()
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return os.FileMode(mask) & os.ModePerm
}
