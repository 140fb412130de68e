package place

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// born tells folders apart that had the same inode one after the other: when the
// one called base was made, "" where the system doesn't know.
func born(parent *os.File, base string) (string, error) {
	var st unix.Statx_t
	err := unix.Statx(int(parent.Fd()), base, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // sandboxes forbid it
		return "", nil
	case err != nil || st.Mask&unix.STATX_BTIME == 0:
		return "", err
	}
	return fmt.Sprintf(" of %d.%09d", st.Btime.Sec, st.Btime.Nsec), nil
}

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

// renameNew renames a file of a folder to a name that must be free, and swap
// exchanges two names, each in one step. Both return errors.ErrUnsupported
// where the file system can't.
func renameNew(parent *os.File, from, to string) error {
	return renameat2(parent, from, to, unix.RENAME_NOREPLACE)
}

func swap(parent *os.File, a, b string) error {
	return renameat2(parent, a, b, unix.RENAME_EXCHANGE)
}

func renameat2(parent *os.File, from, to string, flags uint) error {
	fd := int(parent.Fd())
	for {
		err := unix.Renameat2(fd, from, fd, to, flags)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
			return errors.ErrUnsupported
		}
		return err
	}
}

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

// StartWriteback is [File.StartWriteback] for a file of a [Folder].
func StartWriteback(f *os.File, off, n int64) {
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) {
		_ = unix.SyncFileRange(int(fd), off, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

// umask returns the bits that new files and folders of this process lack. It is
// read, not set and set back, because other goroutines may be making files.
func umask() os.FileMode {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return setUmask()
	}
	_, rest, _ := bytes.Cut(b, []byte("\nUmask:\t"))
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, err := strconv.ParseUint(string(digits), 8, 32)
	if err != nil {
		return setUmask()
	}
	return os.FileMode(mask) & os.ModePerm
}

// lockedBy says which process has locked a file, "" for none that is known.
func lockedBy(file os.FileInfo) string {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer f.Close()
	st := stat(file)
	id := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF
		field := strings.Fields(lines.Text())
		if len(field) < 6 || field[1] != "FLOCK" || field[5] != id || field[4] == "0" {
			continue
		}
		command, err := os.ReadFile("/proc/" + field[4] + "/comm")
		if err != nil {
			return "process " + field[4]
		}
		return fmt.Sprintf("process %s (%q)", field[4], strings.TrimSpace(string(command)))
	}
	return ""
}
