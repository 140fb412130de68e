// Package localfile is the one way to open local files for reading: files of
// cartons, folders and image layouts, which strangers made, and files that flags
// name.
//
// # Rules
//
// A file is a regular file. A pipe without a writer would block whoever opens it,
// a device may never end or do something when it is opened, and neither is
// content that can be read twice. Everything is looked at before it is opened,
// and again afterwards: it is opened so that nothing that was put in its place
// meanwhile blocks.
//
// What a user names may be a symlink. What lies in a folder that a stranger made
// is opened through an [os.Root], so that no symlink leads outside.
//
// Small files that a flag names are read up to a limit. Such a name may also
// stand for what this process was started with, as /dev/stdin and <(…) of a shell
// do; who writes there is waited for a limited time.
package localfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// nonblock has a pipe opened without waiting for its other end; on Windows it says
// nothing, where opening waits for nobody.
const nonblock = syscall.O_NONBLOCK

// ErrKind is wrapped by the error for what is no regular file.
var ErrKind = errors.New("want a regular file")

// Open opens a regular file for reading, through symlinks.
func Open(name string) (*os.File, error) {
	return opening{look: os.Stat, open: os.OpenFile}.file(name)
}

// OpenIn opens a regular file of a folder for reading, through symlinks that stay
// inside.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return opening{look: root.Stat, open: root.OpenFile}.file(name)
}

// OpenItself is [OpenIn] that refuses a symlink.
func OpenItself(root *os.Root, name string) (*os.File, error) {
	return opening{look: root.Lstat, open: root.OpenFile, itself: true}.file(name)
}

// opening says how files are opened.
type opening struct {
	look    func(name string) (fs.FileInfo, error)
	open    func(name string, flag int, mode fs.FileMode) (*os.File, error)
	folders bool // they may be folders
	itself  bool // what is opened must be what was looked at
}

// swaps is how often a file is looked at that is another one when it is open: whoever
// replaces it by a rename, as an image layout's index.json is, leaves one or the other.
const swaps = 16

// errSwapped: what was opened is not what was looked at.
var errSwapped = errors.New("was put in another's place, again and again")

// file opens one that is looked at before and afterwards.
func (o opening) file(name string) (*os.File, error) {
	for range swaps - 1 {
		if f, err := o.once(name); !errors.Is(err, errSwapped) {
			return f, err
		}
	}
	return o.once(name)
}

func (o opening) once(name string) (*os.File, error) {
	before, err := o.look(name)
	if err != nil {
		return nil, renamed(err)
	}
	if err := o.check(name, before); err != nil {
		return nil, err
	}
	f, err := o.open(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, renamed(err)
	}
	after, err := f.Stat()
	if err == nil {
		err = o.check(name, after)
	}
	if err == nil && o.itself && !os.SameFile(before, after) {
		err = &fs.PathError{Op: "open", Path: name, Err: errSwapped}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (o opening) check(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() || o.folders && info.IsDir() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("is %s, %w", Kind(info.Mode()), ErrKind)}
}

// OpenRoot is [os.OpenRoot] that no pipe blocks.
func OpenRoot(dir string) (*os.Root, error) {
	if dir == "" {
		return os.OpenRoot(dir) // which is an error
	}
	if runtime.GOOS == "windows" { // it has no such pipes, and other words for what is no folder
		root, err := os.OpenRoot(dir)
		if fi, serr := os.Stat(dir); err != nil && serr == nil && !fi.IsDir() {
			err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
		}
		return root, err
	}
	// With a separator at its end only a folder can be opened.
	root, err := os.OpenRoot(dir + string(filepath.Separator))
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // os gives it as it is
		p.Path = dir
	}
	return root, err
}

// renamed has errors say what the caller wanted, not which system call it took.
func renamed(err error) error {
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // os gives it as it is
		p.Op = "open"
	}
	return err
}

// Kind says what a file is.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m.IsRegular():
		return "a regular file"
	case m&fs.ModeSymlink != 0:
		return "a symlink"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no file"
}

// inherited are names of what a process was started with.
var inherited = regexp.MustCompile(`^/(dev/stdin|dev/fd/[0-9]+|proc/self/fd/[0-9]+)$`)

// inheritedWait is how long somebody who writes to what this process was started
// with may take. A person may be typing.
var inheritedWait = time.Minute

// Read reads a small file that a flag names, at most limit bytes. The device that
// stands for nothing is an empty one.
func Read(name string, limit int64) ([]byte, error) {
	if name == os.DevNull {
		return nil, nil
	}
	f, err := Open(name)
	if errors.Is(err, ErrKind) && inherited.MatchString(name) {
		f, err = openInherited(name)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Files of /proc may say that they are regular, and wait for what is to come. What
	// can't have a deadline does not wait.
	_ = f.SetReadDeadline(time.Now().Add(inheritedWait))
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("did not end within %s", inheritedWait)}
	case err != nil:
		return nil, err
	case int64(len(b)) > limit:
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("has more than %d bytes", limit)}
	}
	return b, nil
}

// openInherited opens a pipe or terminal that this process was started with.
// Where it can't be read with a deadline, as a device, it is refused.
func openInherited(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, renamed(err)
	}
	if err := f.SetReadDeadline(time.Now().Add(inheritedWait)); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("is a device, %w", ErrKind)}
	}
	return f, nil
}

// ExpandHome replaces a leading "~/" by the folder of this user, where there is one.
// Shells leave it alone behind "=" and "oci:".
func ExpandHome(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return name
}
