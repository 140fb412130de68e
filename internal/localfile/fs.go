package localfile

import (
	"io/fs"
	"os"
	"slices"
	"strings"
)

// FS returns a folder as a file system whose files are regular files and
// folders: whatever else lies there, or is put there while it is read, can be
// listed and not opened.
func FS(root *os.Root) fs.ReadLinkFS { return rootFS{root.FS().(fs.ReadLinkFS), root} }

type rootFS struct {
	fs.ReadLinkFS
	root *os.Root
}

// Open implements [fs.FS].
func (r rootFS) Open(name string) (fs.File, error) {
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (r rootFS) open(name string) (*os.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return opening{look: r.root.Stat, open: r.root.OpenFile, folders: true}.file(name)
}

// Stat implements [fs.StatFS].
func (r rootFS) Stat(name string) (fs.FileInfo, error) {
	return fs.Stat(r.root.FS(), name)
}

// ReadDir implements [fs.ReadDirFS].
func (r rootFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
