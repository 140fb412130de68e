package place

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

var (
	// ErrExist: the output exists and was not to be replaced.
	ErrExist = errors.New("output exists already")
	// ErrBusy: another process is writing the same output.
	ErrBusy = errors.New("output is being written by another process")
	// ErrSymlink: the output is a symlink.
	ErrSymlink = errors.New("output is a symlink")
)

const (
	partialSuffix = ".partial"
	journalSuffix = ".journal" // behind partialSuffix
	oldSuffix     = ".old"     // behind partialSuffix
)

// Options say how an output is made. The zero value is useful.
type Options struct {
	// Replace lets Commit replace a file, or a folder by a folder, that exists.
	Replace bool
	// Resume takes over the content that a process left, and keeps a journal.
	Resume bool
}

// output is what a File and a Folder have in common.
type output struct {
	name    string   // as the caller gave it, for errors
	base    string   // the last component of name
	parent  *os.Root // the folder that holds it
	dir     *os.File // the same
	replace bool
	resume  bool
	inSteps bool // for tests: the system can't swap two folders

	journal journal     // its File is nil when the output is done with
	content io.Closer   // NAME.partial, open
	made    fs.FileInfo // what NAME.partial is; nil before there is one
	created bool        // it was not there before
	stale   bool        // it holds what an earlier process left, which is gone on with
	lost    bool        // a sync has failed
}

// newOutput opens the folder that is to hold name.
func newOutput(name string, opts Options) (*output, error) {
	base := filepath.Base(name)
	switch base {
	case ".", "..", string(filepath.Separator):
		return nil, hint.With(&fs.PathError{Op: "create", Path: name, Err: fs.ErrExist},
			"it is a folder: name a file or folder in it")
	}
	parent, err := localfile.OpenRoot(filepath.Dir(filepath.Clean(name)))
	if err != nil {
		err = Explain("create", name, err)
		if errors.Is(err, fs.ErrNotExist) {
			err = hint.With(err, "make the folder first: mkdir -p %s", filepath.Dir(name))
		}
		return nil, err
	}
	dir, err := parent.Open(".")
	if err != nil {
		parent.Close()
		return nil, Explain("create", name, err)
	}
	return &output{name: name, base: base, parent: parent, dir: dir, replace: opts.Replace, resume: opts.Resume}, nil
}

// Name returns the final name, as it was given.
func (o *output) Name() string { return o.name }

// Partial returns the name that the output has until Commit.
func (o *output) Partial() string { return o.beside(o.partial()) }

// Stale reports whether the output holds what an earlier process left: with
// Options.Resume only.
func (o *output) Stale() bool { return o.stale }

// Unsynced reports whether Commit could not bring the content to the disk.
func (o *output) Unsynced() bool { return o.lost }

func (o *output) partial() string { return o.base + partialSuffix }

// beside returns the path of a name in the output's folder, for errors.
func (o *output) beside(base string) string {
	return filepath.Join(filepath.Dir(o.name), base)
}

// check looks at what has the final name, which must not be a symlink and, if
// it is there at all, must be what usable accepts and may be replaced. It
// returns what is there, nil for nothing.
func (o *output) check(want string, usable func(fs.FileMode) bool) (fs.FileInfo, error) {
	fi, err := o.parent.Lstat(o.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, Explain("create", o.name, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return nil, hint.With(fmt.Errorf("%s: %w", o.name, ErrSymlink), "name the file that it points to")
	case !usable(fi.Mode()):
		err := fmt.Errorf("%s: %w: it is %s, want %s", o.name, ErrExist, localfile.Kind(fi.Mode()), want)
		return nil, hint.With(err, "give another name")
	case o.replace && o.onlyOwnerReplaces(fi):
		err := fmt.Errorf("%s: %w, belongs to another user, and lies where only its owner may replace it", o.name,
			ErrExist)
		return nil, hint.With(err, "give another name, or another folder")
	}
	return fi, nil
}

// onlyOwnerReplaces reports whether the sticky bit of the folder keeps others from
// giving the name of a file to another one: what was downloaded for hours could
// not get its name.
func (o *output) onlyOwnerReplaces(fi fs.FileInfo) bool {
	parent, err := o.dir.Stat()
	return err == nil && parent.Mode()&fs.ModeSticky != 0 &&
		!ownedByCaller(fi) && !ownedByCaller(parent) && !callerIsRoot()
}

// leftover returns what has the name NAME.partial, nil for nothing: that must be
// what usable accepts, the caller's, and ours.
func (o *output) leftover(usable func(fs.FileMode) bool, ours func(fs.FileInfo) bool) (fs.FileInfo, error) {
	fi, err := o.parent.Lstat(o.partial())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, Explain("create", o.name, err)
	case !usable(fi.Mode()):
		return nil, o.inTheWay(o.partial(), "is "+localfile.Kind(fi.Mode()))
	case !ownedByCaller(fi):
		return nil, o.inTheWay(o.partial(), "belongs to another user")
	case !ours(fi):
		return nil, o.inTheWay(o.partial(), "was not made by carton-oci")
	}
	return fi, nil
}

// ended reports whether the output was committed, kept or discarded.
func (o *output) ended() bool { return o.journal.File == nil }

// keepable reports whether another process can go on with NAME.partial: it would
// find it, and could lock it.
func (o *output) keepable() bool {
	if !o.journal.locked || !o.resume {
		return false
	}
	named, err := o.parent.Lstat(o.partial())
	return err == nil && os.SameFile(named, o.made) || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// finish ends an output that has its name.
func (o *output) finish() error {
	o.content.Close() // the next process may replace NAME as soon as the journal is gone
	// At once: a process that is killed in the sync would leave it for good.
	o.removeJournal()
	err := Explain("sync the folder of", o.name, syncFolder(o.dir))
	if err == nil {
		err = o.stillThere()
	}
	o.close()
	return err
}

// end ends an output that is not to be: there is no NAME.partial any more.
func (o *output) end() {
	o.removeJournal()
	o.close()
}

// abandon ends an output that could not be begun: what was there before it stays.
func (o *output) abandon() {
	if o.created {
		o.content.Close()
		o.parent.Remove(o.partial())
	}
	if o.journal.fresh {
		o.removeJournal()
	}
	o.close()
}

// close lets go of the lock. All content is synced, or of no more use: closing has
// nothing to tell.
func (o *output) close() {
	if o.content != nil {
		o.content.Close()
	}
	if o.journal.File != nil {
		o.journal.Close()
		o.journal.File = nil
	}
	o.dir.Close()
	o.parent.Close()
}

// stillThere is an error where the folder that holds the output has lost its name:
// who is told that NAME is complete looks for it there.
func (o *output) stillThere() error {
	dir := filepath.Dir(filepath.Clean(o.name))
	open, err := o.dir.Stat()
	if err != nil {
		return nil //nolint:nilerr // it has told nothing
	}
	named, err := os.Stat(dir)
	if err == nil && os.SameFile(named, open) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err = o.errorf("the folder %s was moved or removed meanwhile", dir)
	return hint.With(err, "%s is complete in that folder, wherever it is now", o.base)
}

// errSwapped: a name is somebody else's, or nobody's, which errGone says.
var (
	errSwapped = errors.New("was swapped for something else meanwhile")
	errGone    = goneError{}
)

type goneError struct{}

func (goneError) Error() string        { return "was removed meanwhile" }
func (goneError) Is(target error) bool { return target == errSwapped }

// sameFile wants the name base to be of what was made. errSwapped says that it is
// not; with any other error nobody knows.
func (o *output) sameFile(base string) error {
	named, err := o.parent.Lstat(base)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Explain("look at", o.beside(base), err)
	case err != nil:
		return hint.With(o.errorf("%s %w", o.beside(base), errGone),
			"run it again, and leave that name alone while it runs")
	case os.SameFile(named, o.made):
		return nil
	}
	return o.swapped(base)
}

// errorf is an error about the output that needs no more explanation.
func (o *output) errorf(format string, args ...any) error {
	return &explained{fs.PathError{Op: "create", Path: o.name, Err: fmt.Errorf(format, args...)}}
}

// exists is the error for an output that is there already.
func (o *output) exists() error {
	return hint.With(fmt.Errorf("%s: %w", o.name, ErrExist), "use %s to replace it, or another name", hint.Force)
}

func (o *output) busy() error {
	return hint.With(fmt.Errorf("%s: %w", o.name, ErrBusy), "wait for it, or choose another name")
}

// inTheWay is the error for a file beside the output that can't be taken over.
func (o *output) inTheWay(base, what string) error {
	path := o.beside(base)
	return hint.With(o.errorf("%s %s", path, what), "move or remove %s, or choose another name for the output", path)
}

// swapped is the error for a name that somebody has given to something else.
func (o *output) swapped(base string) error {
	err := o.errorf("%s %w", o.beside(base), errSwapped)
	return hint.With(err, "don't use what is there; others may write to %s: choose a folder that is yours",
		filepath.Dir(o.name))
}
