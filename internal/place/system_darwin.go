package place

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew and swap are as in system_linux.go.
func renameNew(parent *os.File, from, to string) error {
	return renameatx(parent, from, to, unix.RENAME_EXCL)
}

func swap(parent *os.File, a, b string) error {
	return renameatx(parent, a, b, unix.RENAME_SWAP)
}

func renameatx(parent *os.File, from, to string, flags uint32) error {
	fd := int(parent.Fd())
	err := unix.RenameatxNp(fd, from, fd, to, flags)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return errors.ErrUnsupported
	}
	return err
}

func born(*os.File, string) (string, error) { return "", nil }
