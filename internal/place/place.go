// Package place is the one way to put a file or a folder in its place: beside
// its final name as NAME.partial, and under its final name by one rename, when
// it is complete and on the disk.
//
// # Rules
//
// A final name holds what it held before, or all of the new content. A file
// that exists is not touched without Options.Replace: the rename itself refuses
// to replace it, whoever made it meanwhile.
//
// Nothing is taken over, removed or believed that this package did not make.
//
//   - A folder is replaced only where the caller accounts for everything in it
//     ([Folder.MayReplace]); else the error names the first few strangers. It is
//     looked at again once it has left its name, and gets that back where
//     something has come into it, or where a process was killed before it
//     could look; and what is removed of it is what was accounted
//     for, one by one.
//   - NAME.partial is a partial of ours where NAME.partial.journal beside it is our
//     journal, a file that begins as ours do, or where it is empty; a folder, where
//     NAME.partial.lock says so by its inode and time of birth. So is NAME.partial.old. All of them
//     must belong to the caller. What has one of these names and is something else
//     is an error where the name is needed, and otherwise left alone.
//   - What is there already counts as an output only if it is as this package would
//     have left it: see [Foreign].
//
// One process at a time. NAME.partial is locked (a folder by
// NAME.partial.lock beside it); another process that wants the name gets
// [ErrBusy] at once. A NAME.partial of ours without a lock is what a dead process
// left behind, and is taken over if it is a plain file with one name that belongs
// to the caller: what anybody else could still write to is never used.
//
// The folder that holds NAME is opened once and everything is done relative to
// it, so that swapping a component of the path for a symlink leads nowhere
// else. Where that folder has lost its name by the end, the output is complete in
// it, and an error says so. NAME itself must not be a symlink.
//
// In a folder where others may rename files (one that all may write to, without
// the sticky bit) NAME.partial is looked at before and after it is renamed, and
// must be the file or folder that was written; else the output is an error. What
// remains possible there is what others may do to any name in such a folder:
// give NAME to something else as soon as Commit has returned, or remove it.
//
// Nothing is left behind: after Commit or Discard there is no NAME.partial, no
// journal and no lock. A process that is killed leaves them, and the next one
// takes over. With Options.Resume it also takes over the content, of which the
// journal says what it is; Keep leaves all of it on purpose (package download says
// when). An output that can't be begun, for whatever reason, leaves it as it was.
// Content is taken over from plain files with one name that belong to the caller
// and that nobody else may write to; this package believes nothing of it, and
// what a folder holds besides is for [Folder.Prune] to remove. Without locks
// nothing is kept: the next process could not tell that it may.
//
// While it is partial an output can be read by its owner only; Commit gives it the
// mode that the umask leaves of 0666, or 0777 for folders.
package place

import (
	"errors"
	"fmt"
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
	lockSuffix    = ".lock"    // behind partialSuffix
	asideSuffix   = ".old"     // behind partialSuffix
	journalSuffix = ".journal" // behind partialSuffix
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
	replace bool
	resume  bool
	inSteps bool // for tests: the system can't swap two folders
}

// newOutput opens the folder that is to hold name.
func newOutput(name string, opts Options) (*output, error) {
	base := filepath.Base(name)
	switch base {
	case ".", "..", string(filepath.Separator):
		return nil, hint.With(&fs.PathError{Op: "create", Path: name, Err: fs.ErrInvalid},
			"give the output a name of its own")
	}
	parent, err := localfile.OpenRoot(filepath.Dir(filepath.Clean(name)))
	if err != nil {
		err = Explain("create", name, err)
		if errors.Is(err, fs.ErrNotExist) {
			err = hint.With(err, "make the folder first: mkdir -p %s", filepath.Dir(name))
		}
		return nil, err
	}
	return &output{name: name, base: base, parent: parent, replace: opts.Replace, resume: opts.Resume}, nil
}

func (o *output) partial() string { return o.base + partialSuffix }

// beside returns the path of a name in the output's folder, for errors.
func (o *output) beside(base string) string {
	return filepath.Join(filepath.Dir(o.name), base)
}

// exists is the error for an output that is there already.
func (o *output) exists() error {
	return hint.With(fmt.Errorf("%s: %w", o.name, ErrExist), "use --force to replace it, or another name")
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
		err := fmt.Errorf("%s: %w: it is %s, want %s", o.name, ErrExist, kind(fi.Mode()), want)
		return nil, hint.With(err, "give another name")
	case o.replace && o.heldByOwner(fi):
		err := fmt.Errorf("%s: %w, belongs to another user, and lies where only its owner may replace it", o.name, ErrExist)
		return nil, hint.With(err, "give another name, or another folder")
	}
	return fi, nil
}

// heldByOwner reports whether the sticky bit of the folder keeps others from
// giving the name of a file to another one: what was downloaded for hours could
// not get its name.
func (o *output) heldByOwner(fi fs.FileInfo) bool {
	parent, err := o.parent.Stat(".")
	return err == nil && parent.Mode()&fs.ModeSticky != 0 &&
		!ownedByCaller(fi) && !ownedByCaller(parent) && !callerIsRoot()
}

// syncParent makes the rename survive a crash.
func (o *output) syncParent() error {
	d, err := o.parent.Open(".")
	if err != nil {
		return Explain("sync the folder of", o.name, err)
	}
	defer d.Close()
	return Explain("sync the folder of", o.name, syncFolder(d))
}

// stillThere is an error where the folder that holds the output has lost its name:
// who is told that NAME is complete looks for it there.
func (o *output) stillThere() error {
	dir := filepath.Dir(filepath.Clean(o.name))
	open, err := o.parent.Stat(".")
	if err != nil {
		return nil //nolint:nilerr // it has told nothing
	}
	named, err := os.Stat(dir)
	if err == nil && os.SameFile(named, open) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err = &explained{fs.PathError{Op: "create", Path: o.name, Err: fmt.Errorf("the folder %s was moved or removed meanwhile", dir)}}
	return hint.With(err, "%s is complete in that folder, wherever it is now", o.base)
}

// kind says what a file that is in the way is.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m.IsRegular():
		return "a file"
	case m&fs.ModeSymlink != 0:
		return "a symlink"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a pipe or socket"
}
