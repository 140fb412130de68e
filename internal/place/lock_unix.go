//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package place

import (
	"errors"
	"os"
	"syscall"
)

// lock takes an exclusive lock that ends with f, or with the process.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOLCK):
			return errNoLocks
		}
		return err
	}
}
