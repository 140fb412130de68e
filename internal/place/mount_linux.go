package place

import (
	"os"

	"golang.org/x/sys/unix"
)

// isMountPoint reports whether something is mounted on a folder: it can be
// renamed, or removed, only with that. False where the kernel doesn't tell (before
// 5.8).
func isMountPoint(root *os.Root, path string) bool {
	d, err := root.Open(path)
	if err != nil {
		return false
	}
	defer d.Close()
	var st unix.Statx_t
	err = unix.Statx(int(d.Fd()), "", unix.AT_EMPTY_PATH, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
