package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// versionControl are folders, and in worktrees files, that are no part of a
// model and often larger than it.
var versionControl = []string{".git", ".hg", ".svn", ".jj"}

// MaxLinkedEntries is the most files and folders that are packed a second time
// because they lie in a folder that a symlink leads to. Symlinks in such folders
// multiply them.
const MaxLinkedEntries = 20_000

// walk is a folder whose files are being collected.
type walk struct {
	root    *os.Root
	below   string // where they go in the carton: "model/", "" for its root
	files   []*file
	stack   []fs.FileInfo // the folders that the walk is in
	linked  int           // how many of them symlinks have led to
	again   int           // entries that were met in such folders
	leftOut []string
	paths   *carton.Paths // of the whole carton
}

// collect walks a folder. The names of what it refuses are those of the folder.
func (w *walk) collect() error {
	info, err := w.root.Stat(".")
	if err != nil {
		return err
	}
	if err := w.folder(".", info); err != nil {
		return err
	}
	return w.settle()
}

// folder adds what a folder holds.
func (w *walk) folder(dir string, info fs.FileInfo) error {
	for _, outer := range w.stack {
		if os.SameFile(outer, info) {
			return refuse(dir, "is a symlink to a folder around it")
		}
	}
	w.stack = append(w.stack, info)
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	entries, err := fs.ReadDir(localfile.FS(w.root), dir)
	if err != nil {
		return err
	}
	kept := 0
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if slices.Contains(versionControl, e.Name()) {
			w.leftOut = append(w.leftOut, name)
			continue
		}
		kept++
		if err := w.entry(name, e.Type()); err != nil {
			return err
		}
	}
	if kept == 0 && dir != "." {
		w.leftOut = append(w.leftOut, dir+"/")
	}
	return nil
}

// entry adds one entry of a folder.
func (w *walk) entry(name string, mode fs.FileMode) error {
	if w.linked > 0 {
		if w.again++; w.again > MaxLinkedEntries {
			return &carton.Error{Path: name, Kind: carton.ErrLimit, Msg: fmt.Sprintf("symlinks to folders repeat more than %d files and folders", MaxLinkedEntries)}
		}
	}
	target, at := "", name
	if mode&fs.ModeSymlink != 0 {
		var err error
		if target, err = w.root.Readlink(name); err != nil {
			return err
		}
		target = filepath.ToSlash(target)
	}
	info, err := w.root.Stat(name) // through symlinks, and never outside
	if errors.Is(err, syscall.ELOOP) && target != "" {
		at, info, err = w.follow(name, err)
	}
	switch {
	case err != nil && target != "":
		return w.badLink(name, target, err)
	case err != nil:
		return err
	case info.IsDir():
		if err := carton.CheckPath(w.below + name); err != nil {
			return err
		}
		if target == "" {
			return w.folder(name, info)
		}
		w.linked++
		defer func() { w.linked-- }()
		return w.folder(name, info)
	case !info.Mode().IsRegular():
		return refuse(name, "is neither a file, a folder nor a symlink, but %s", kindOf(info.Mode()))
	}
	f := &file{path: w.below + name, root: w.root, name: at, size: info.Size(), target: target}
	if err := w.paths.Add(f.path); err != nil {
		return err
	}
	w.files = append(w.files, f)
	if len(w.files) > carton.MaxMembers {
		return &carton.Error{Kind: carton.ErrLimit, Msg: fmt.Sprintf("holds more than %d files", carton.MaxMembers)}
	}
	return nil
}

// follow goes along a chain of symlinks that is longer than os.Root goes, in
// folders that are none. It returns where the chain ends; tooLong is the error
// where it doesn't.
func (w *walk) follow(name string, tooLong error) (string, fs.FileInfo, error) {
	at := name
	for range carton.MaxSymlinks + 1 {
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			if info, err := w.root.Lstat(dir); err != nil || !info.IsDir() {
				return "", nil, tooLong
			}
		}
		info, err := w.root.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return at, info, err
		}
		target, err := w.root.Readlink(at)
		if err != nil {
			return "", nil, err
		}
		if at = path.Join(path.Dir(at), filepath.ToSlash(target)); filepath.IsAbs(target) || !filepath.IsLocal(filepath.FromSlash(at)) {
			return "", nil, errEscapes(w.root)
		}
	}
	return "", nil, tooLong
}

// badLink says why a symlink can't be followed.
func (w *walk) badLink(name, target string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(name, "is a symlink to %s, which is not there", carton.QuotePath(target))
	}
	if path.IsAbs(target) || !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), target))) || errors.Is(err, errEscapes(w.root)) {
		err := refuse(name, "is a symlink to %s, outside of what is packed", carton.QuotePath(target))
		return hint.With(err, "pack a copy that holds the files themselves: cp -RL")
	}
	return &carton.Error{Path: name, Kind: carton.ErrInsecurePath, Msg: "is a symlink to " + carton.QuotePath(target), Err: err}
}

// errEscapes returns the error that os.Root gives for what lies outside: it has
// no name of its own.
func errEscapes(root *os.Root) error {
	_, err := root.Stat("..")
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// settle decides which symlinks stay. One whose target, seen from where it lies
// in the carton, is a file of the carton and the same file is one; of the others
// the content is packed. Only model/ may have symlinks.
func (w *walk) settle() error {
	byPath := map[string]*file{}
	for _, f := range w.files {
		byPath[f.path] = f
	}
	for _, f := range w.files {
		if f.target == "" {
			continue
		}
		same, err := w.sameFile(f, byPath)
		if err != nil {
			return err
		}
		if !same {
			f.target = ""
		}
	}
	return nil
}

func (w *walk) sameFile(f *file, byPath map[string]*file) (bool, error) {
	to := path.Join(path.Dir(f.path), f.target)
	end, ok := byPath[to]
	if !ok || !strings.HasPrefix(f.path, modelFolder) || !strings.HasPrefix(to, modelFolder) {
		return false, nil
	}
	one, err := w.root.Stat(f.name)
	if err != nil {
		return false, err
	}
	other, err := w.root.Stat(end.name)
	if err != nil {
		return false, err
	}
	return os.SameFile(one, other), nil
}

// kindOf says what a file is that is none of the usual.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return mode.Type().String()
}

func refuse(name, format string, args ...any) error {
	return &carton.Error{Path: name, Kind: carton.ErrInsecurePath, Msg: fmt.Sprintf(format, args...)}
}

const (
	modelFolder  = "model/"
	miscFolder   = "misc/"
	tensorFolder = "tensor_data/"
)
