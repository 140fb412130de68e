package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Explain makes of an error of the file system one that says what was done to
// which output, by the name that its user knows, with a hint where there is
// something to do about it. It returns nil for nil, and an error that it has
// made before as it is.
func Explain(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var done *explained
	if errors.As(err, &done) {
		return err
	}
	err = &explained{fs.PathError{Op: op, Path: name, Err: cause(err)}}
	dir := filepath.Dir(name)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return hint.With(err, "free some space on the disk of %s, then run it again", dir)
	case errors.Is(err, syscall.EDQUOT):
		return hint.With(err, "the disk quota for %s is used up: free some space, then run it again", dir)
	case errors.Is(err, syscall.EFBIG):
		return hint.With(err, "the file system of %s, or the limit that ulimit -f shows, allows no file of this size",
			dir)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return hint.With(err, "the output is made in %s, which must be writable", dir)
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
		return hint.With(err, "%s seems to be a mount point: give a name below it", name)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return hint.With(err, "too many files are open: raise ulimit -n, or lower %s", hint.Concurrency)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return hint.With(err, "choose a shorter name: it is written as NAME%s first", partialSuffix)
	}
	return err
}

// explained marks an error that already names the output.
type explained struct{ fs.PathError }

// Unwrap returns the error as the *fs.PathError that it is.
func (e *explained) Unwrap() error { return &e.PathError }

// cause strips what the os package has put around an error: it names
// NAME.partial, relative to a folder that its reader doesn't see.
func cause(err error) error {
	for {
		var (
			pe *fs.PathError
			le *os.LinkError
			se *os.SyscallError
		)
		switch {
		case errors.As(err, &pe):
			err = pe.Err
		case errors.As(err, &le):
			err = le.Err
		case errors.As(err, &se):
			err = se.Err
		default:
			return err
		}
	}
}
