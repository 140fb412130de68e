package place

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// born tells folders apart that had the same inode one after the other: when it was
// made, "" where the file system doesn't know.
func born(parent *os.File, base string) string {
	var st unix.Statx_t
	err := unix.Statx(int(parent.Fd()), base, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return ""
	}
	return fmt.Sprintf(" of %d.%09d", st.Btime.Sec, st.Btime.Nsec)
}
