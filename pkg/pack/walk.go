package pack

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// MaxLinkedEntries is the most files and folders that are packed a second time
// because they lie in a folder that a symlink leads to. Symlinks in such folders
// multiply them.
const MaxLinkedEntries = 20_000

// walk is a folder whose files are being collected.
type walk struct {
	root    *os.Root
	base    string // the folder in root; "" for root itself
	inCache bool   // root is a hub's cache, of which the folder is a snapshot
	below   string // where they go in the carton: "model/", "" for its root
	rules   rules  // what is left out
	// listed are members of a carton that is made anew, nil for none: they stay.
	listed   map[string]bool
	skip     []string // in the folder's root: what is no member, and not left out either
	files    []*file
	stack    []fs.FileInfo // the folders that the walk is in
	linked   int           // how many of them symlinks have led to
	repeated int           // entries that were met in such folders
	leftOut  []string
	paths    *carton.Paths // of the whole carton
}

// at returns the name in w.root of what is called so in the folder.
func (w *walk) at(name string) string { return path.Join(w.base, name) }

// collect walks a folder. The names of what it refuses are those of the folder.
func (w *walk) collect() error {
	info, err := w.root.Stat(w.at("."))
	if err != nil {
		return err
	}
	if err := w.folder(".", info, none); err != nil {
		return err
	}
	return w.keepSymlinks()
}

// folder adds what a folder holds, about which a rule decides.
func (w *walk) folder(dir string, info fs.FileInfo, rule int) error {
	for _, outer := range w.stack {
		if os.SameFile(outer, info) {
			return refuse(dir, "is a symlink to a folder around it")
		}
	}
	w.stack = append(w.stack, info)
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	entries, err := fs.ReadDir(localfile.FS(w.root), w.at(dir))
	if err != nil {
		return err
	}
	before, out := len(w.files), len(w.leftOut)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		number := w.rules.of(name, rule)
		switch {
		case slices.Contains(w.skip, name):
		case !w.rules.leaves(number) || w.listed[name]:
			err = w.entry(name, e.Type(), number)
		case e.IsDir() && (w.listed != nil || w.rules.mayBringBack(number)):
			err = w.lookBelow(name, number)
		default:
			w.leftOut = append(w.leftOut, name)
		}
		if err != nil {
			return err
		}
	}
	if len(w.files) == before && len(w.leftOut) == out && dir != "." {
		w.leftOut = append(w.leftOut, dir+"/")
	}
	return nil
}

// lookBelow adds what is brought back of a folder that is left out. Where that is
// nothing, the folder is left out in one.
func (w *walk) lookBelow(name string, rule int) error {
	info, err := w.root.Lstat(w.at(name))
	if err != nil {
		return err
	}
	before, out := len(w.files), len(w.leftOut)
	if err := w.folder(name, info, rule); err != nil {
		return err
	}
	if len(w.files) == before {
		w.leftOut = append(w.leftOut[:out], name)
	}
	return nil
}

// entry adds one entry of a folder.
func (w *walk) entry(name string, mode fs.FileMode, rule int) error {
	if w.linked > 0 {
		if w.repeated++; w.repeated > MaxLinkedEntries {
			return &carton.Error{
				Path: name, Kind: carton.ErrLimit,
				Msg: fmt.Sprintf("symlinks to folders repeat more than %d files and folders", MaxLinkedEntries),
			}
		}
	}
	if mode&fs.ModeSymlink != 0 {
		return w.symlink(name, rule)
	}
	info, err := w.root.Stat(w.at(name))
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return w.add(name, w.at(name), "", info)
	}
	if err := carton.CheckPath(w.below + name); err != nil {
		return err
	}
	return w.folder(name, info, rule)
}

// symlink adds what a symlink leads to.
func (w *walk) symlink(name string, rule int) error {
	target, err := w.root.Readlink(w.at(name))
	if err != nil {
		return err
	}
	at, relative := w.at(name), filepath.ToSlash(target)
	info, err := w.root.Stat(at) // through symlinks, and never outside
	if filepath.IsAbs(target) {
		if to, ok := w.inside(target); ok {
			relative = relativeTo(path.Dir(at), to)
		}
	}
	if w.inCache || filepath.IsAbs(target) || errors.Is(err, syscall.ELOOP) {
		at, info, err = w.follow(at, err)
	}
	switch {
	case err != nil:
		return w.badLink(name, filepath.ToSlash(target), err)
	case !info.IsDir():
		return w.add(name, at, relative, info)
	case at != w.at(name):
		return refuse(name, "is a symlink to the folder %s, which can't be followed: want a relative one",
			errtext.Quote(filepath.ToSlash(target)))
	}
	if err := carton.CheckPath(w.below + name); err != nil {
		return err
	}
	w.linked++
	defer func() { w.linked-- }()
	return w.folder(name, info, rule)
}

// add adds a file, which is called at in w.root.
func (w *walk) add(name, at, target string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return refuse(name, "is neither a file, a folder nor a symlink, but %s", localfile.Kind(info.Mode()))
	}
	f := &file{path: w.below + name, root: w.root, name: at, size: info.Size(), target: target}
	if w.inCache {
		f.nameHash = hashInName(at)
	}
	return w.keep(f)
}

// keep takes a file, whose name is a member's.
func (w *walk) keep(f *file) error {
	if err := w.paths.Add(f.path); err != nil {
		return err
	}
	w.files = append(w.files, f)
	if len(w.files) > carton.MaxMembers {
		return &carton.Error{Kind: carton.ErrLimit, Msg: fmt.Sprintf("holds more than %d files", carton.MaxMembers)}
	}
	return nil
}

// follow goes along a chain of symlinks where os.Root does not: a long one, one
// with an absolute target, and one in a hub's cache, of which only the snapshot
// and the blobs are anybody's files. It goes through folders that are none. It
// returns where the chain ends; tooLong is the error where it doesn't.
func (w *walk) follow(at string, tooLong error) (string, fs.FileInfo, error) {
	if tooLong == nil {
		tooLong = syscall.ELOOP
	}
	for range carton.MaxSymlinks + 1 {
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			if info, err := w.root.Lstat(dir); err != nil || !info.IsDir() {
				return "", nil, cmp.Or(err, tooLong)
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
		to, ok := path.Join(path.Dir(at), filepath.ToSlash(target)), true
		if filepath.IsAbs(target) {
			to, ok = w.inside(target)
		}
		if !ok || !filepath.IsLocal(filepath.FromSlash(to)) || w.inCache && !inSnapshot(w.base, to) {
			return "", nil, errEscapes(w.root)
		}
		at = to
	}
	return "", nil, tooLong
}

// inside returns the name in w.root of what an absolute path names, whatever
// names the folders above the root go by.
func (w *walk) inside(target string) (string, bool) {
	dir, err := filepath.Abs(w.root.Name())
	if err != nil {
		return "", false
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	for _, dir := range []string{dir, resolved} {
		if to, err := filepath.Rel(dir, target); err == nil && filepath.IsLocal(to) {
			return filepath.ToSlash(to), true
		}
	}
	return "", false
}

// relativeTo writes the target of a symlink in a folder.
func relativeTo(dir, to string) string {
	target, err := filepath.Rel(filepath.FromSlash(dir), filepath.FromSlash(to))
	if err != nil {
		return to
	}
	return filepath.ToSlash(target)
}

// badLink says why a symlink can't be followed.
func (w *walk) badLink(name, target string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err := refuse(name, "is a symlink to %s, which is not there", errtext.Quote(target))
		if w.inCache {
			return hintToDownload(err)
		}
		return err
	}
	_, inside := w.inside(filepath.FromSlash(target))
	if path.IsAbs(target) && !inside || !path.IsAbs(target) &&
		!filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(w.at(name)), target))) ||
		errors.Is(err, errEscapes(w.root)) {
		err := refuse(name, "is a symlink to %s, outside of what is packed", errtext.Quote(target))
		return hint.With(err, "pack a copy that holds the files themselves: cp -RL")
	}
	return &carton.Error{
		Path: name, Kind: carton.ErrInsecurePath, Msg: "is a symlink to " + errtext.Quote(target),
		Err: err,
	}
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

// keepSymlinks decides which symlinks stay. One whose target, seen from where it lies
// in the carton, is a file of the carton and the same file is one; of the others
// the content is packed. Only model/ may have symlinks.
func (w *walk) keepSymlinks() error {
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

func refuse(name, format string, args ...any) error {
	return &carton.Error{Path: name, Kind: carton.ErrInsecurePath, Msg: fmt.Sprintf(format, args...)}
}

const (
	modelFolder  = "model/"
	miscFolder   = "misc/"
	tensorFolder = "tensor_data/"
)
