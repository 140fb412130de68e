package place

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file of a folder to a name that must be free, and swap
// exchanges two names, each in one step. Both return errors.ErrUnsupported
// where the file system can't.
func renameNew(parent *os.Root, from, to string) error {
	return renameatx(parent, from, to, unix.RENAME_EXCL)
}

func swap(parent *os.Root, a, b string) error {
	return renameatx(parent, a, b, unix.RENAME_SWAP)
}

func renameatx(parent *os.Root, from, to string, flags uint32) error {
	d, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	fd := int(d.Fd())
	err = unix.RenameatxNp(fd, from, fd, to, flags)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return errors.ErrUnsupported
	}
	return err
}
