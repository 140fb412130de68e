//go:build unix

package place

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// modeBits are the mode bits that mean something here.
const modeBits = 0o777

// ownedByCaller reports whether a file belongs to who runs this process.
func ownedByCaller(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// ownedByRoot reports whether a file belongs to who may change any file anyway.
func ownedByRoot(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}

func callerIsRoot() bool { return os.Geteuid() == 0 }

// links returns how many names a file has.
func links(fi fs.FileInfo) uint64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(st.Nlink) //nolint:unconvert // its type differs from system to system
}

// inode names a folder for as long as it exists, whatever its name.
func inode(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return "folder"
	}
	return "inode " + strconv.FormatUint(uint64(st.Ino), 10) //nolint:unconvert // its type differs from system to system
}

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
