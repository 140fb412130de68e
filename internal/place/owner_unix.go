//go:build unix

package place

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// ownedByCaller reports whether a file belongs to who runs this process.
func ownedByCaller(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// modeBits are the mode bits that mean something here.
const modeBits = 0o777

// links returns how many names a file has.
func links(fi fs.FileInfo) uint64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(st.Nlink) //nolint:unconvert // its type differs from system to system
}

// identity names a folder for as long as it exists, whatever its name.
func identity(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return "folder"
	}
	return "inode " + strconv.FormatUint(uint64(st.Ino), 10) //nolint:unconvert // its type differs from system to system
}

// ownedByRoot reports whether a file belongs to who may change any file anyway.
func ownedByRoot(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}

func callerIsRoot() bool { return os.Geteuid() == 0 }
