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
	return renameat2(parent, from, to, unix.RENAME_NOREPLACE)
}

func swap(parent *os.Root, a, b string) error {
	return renameat2(parent, a, b, unix.RENAME_EXCHANGE)
}

func renameat2(parent *os.Root, from, to string, flags uint) error {
	d, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	fd := int(d.Fd())
	for {
		err = unix.Renameat2(fd, from, fd, to, flags)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
			return errors.ErrUnsupported
		}
		return err
	}
}
