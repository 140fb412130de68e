package pack

import (
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// listFS is a listing as a file system, for what looks at a folder to say what it
// is.
type listFS struct {
	ctx   context.Context //nolint:containedctx // fs.FS has methods without one
	nodes map[string]*listNode
}

// listNode is a file or folder of a listing; it is its own fs.FileInfo and
// fs.DirEntry.
type listNode struct {
	name  string
	file  *Listed // nil for a folder
	below []fs.DirEntry
}

func newListFS(ctx context.Context, files []Listed) *listFS {
	l := &listFS{ctx: ctx, nodes: map[string]*listNode{".": {name: "."}}}
	for i := range files {
		name := files[i].Path
		if !fs.ValidPath(name) || l.nodes[name] != nil {
			continue // it is refused where it is collected
		}
		l.put(name, &listNode{name: path.Base(name), file: &files[i]})
	}
	for _, n := range l.nodes {
		slices.SortFunc(n.below, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return l
}

// put adds a node, and the folders around it.
func (l *listFS) put(name string, n *listNode) {
	l.nodes[name] = n
	dir := path.Dir(name)
	around := l.nodes[dir]
	if around == nil {
		around = &listNode{name: path.Base(dir)}
		l.put(dir, around)
	}
	around.below = append(around.below, n)
}

func (l *listFS) find(op, name string) (*listNode, error) {
	n := l.nodes[name]
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	case n == nil:
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

// Open implements fs.FS, of files.
func (l *listFS) Open(name string) (fs.File, error) {
	n, err := l.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	body, err := n.file.OpenRange(l.ctx, 0, n.file.Size)
	if err != nil {
		return nil, err
	}
	return openListed{body, n}, nil
}

// Stat implements fs.StatFS.
func (l *listFS) Stat(name string) (fs.FileInfo, error) { return l.find("stat", name) }

// ReadDir implements fs.ReadDirFS.
func (l *listFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := l.find("readdir", name)
	if err == nil && !n.IsDir() {
		err = &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(n.below), nil
}

// openListed is an fs.File.
type openListed struct {
	io.ReadCloser
	node *listNode
}

// Stat implements fs.File.
func (f openListed) Stat() (fs.FileInfo, error) { return f.node, nil }

// Name implements fs.FileInfo, and so do the others.
func (n *listNode) Name() string { return n.name }

// IsDir reports whether it is a folder.
func (n *listNode) IsDir() bool { return n.file == nil }

// Info returns the node itself.
func (n *listNode) Info() (fs.FileInfo, error) { return n, nil }

// ModTime is none.
func (n *listNode) ModTime() time.Time { return time.Time{} }

// Sys is nil.
func (n *listNode) Sys() any { return nil }

// Type is that of Mode.
func (n *listNode) Type() fs.FileMode { return n.Mode().Type() }

// Mode is that of a plain file or folder.
func (n *listNode) Mode() fs.FileMode {
	if n.IsDir() {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// Size is the file's, in bytes.
func (n *listNode) Size() int64 {
	if n.IsDir() {
		return 0
	}
	return n.file.Size
}
