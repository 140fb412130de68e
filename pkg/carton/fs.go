package carton

import (
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// FS shows a carton as what it unpacks to: its members and MANIFEST, read-only,
// with the modes 0644 and 0755 and the date that a canonical carton has. The
// result implements [fs.ReadDirFS], [fs.StatFS] and [fs.ReadLinkFS].
//
// A file's Read returns io.EOF only if the whole content had the right hash, as
// [Source] Open does. The size of a linked member is 0 where it is not known.
// The list of members is asked for once, by the first call.
func FS(src Source) fs.FS {
	return &sourceFS{src: src}
}

type sourceFS struct {
	src Source

	mu    sync.Mutex
	nodes map[string]*node // by path; "." is the root; nil until listed
}

// node is a file, symlink or folder.
type node struct {
	path   string
	mode   fs.FileMode
	size   int64
	target string
	below  []*node // a folder's, sorted by name
}

// list returns the node at name, of all that there are.
func (f *sourceFS) list(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes == nil {
		members, err := f.src.Members(context.Background())
		if err == nil {
			err = f.src.Sizes(context.Background(), members)
		}
		if err != nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: err}
		}
		f.nodes = memberTree(members, f.src.Manifest().Len())
	}
	n, ok := f.nodes[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

// memberTree makes the nodes of members, of MANIFEST and of the folders that
// they lie in.
func memberTree(members []Member, manifest int64) map[string]*node {
	nodes := map[string]*node{".": {path: ".", mode: fs.ModeDir | 0o755}}
	var add func(n *node)
	add = func(n *node) {
		nodes[n.path] = n
		dir := path.Dir(n.path)
		if nodes[dir] == nil {
			add(&node{path: dir, mode: fs.ModeDir | 0o755})
		}
		nodes[dir].below = append(nodes[dir].below, n)
	}
	add(&node{path: ManifestName, mode: 0o644, size: manifest})
	for _, m := range members {
		n := &node{path: m.Path, mode: 0o644, size: max(m.Size, 0)}
		if m.Target != "" {
			n.mode, n.target, n.size = fs.ModeSymlink|0o777, m.Target, int64(len(m.Target))
		}
		add(n)
	}
	for _, n := range nodes {
		slices.SortFunc(n.below, func(a, b *node) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return nodes
}

// follow is list through symlinks. The source has checked that they end.
func (f *sourceFS) follow(op, name string) (*node, error) {
	n, err := f.list(op, name)
	for range MaxSymlinks {
		if err != nil || n.target == "" {
			break
		}
		n, err = f.list(op, path.Join(path.Dir(n.path), n.target))
	}
	return n, err
}

// Open implements [fs.FS].
func (f *sourceFS) Open(name string) (fs.File, error) {
	n, err := f.follow("open", name)
	if err != nil {
		return nil, err
	}
	named := n.as(name)
	if n.IsDir() {
		return &openFolder{node: named}, nil
	}
	r, err := f.src.Open(context.Background(), name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openMember{node: named, r: r}, nil
}

// Stat implements [fs.StatFS].
func (f *sourceFS) Stat(name string) (fs.FileInfo, error) {
	n, err := f.follow("stat", name)
	if err != nil {
		return nil, err
	}
	return n.as(name), nil
}

// Lstat implements [fs.ReadLinkFS].
func (f *sourceFS) Lstat(name string) (fs.FileInfo, error) {
	n, err := f.list("lstat", name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ReadLink implements [fs.ReadLinkFS].
func (f *sourceFS) ReadLink(name string) (string, error) {
	n, err := f.list("readlink", name)
	if err == nil && n.target == "" {
		err = &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return "", err
	}
	return n.target, nil
}

// ReadDir implements [fs.ReadDirFS].
func (f *sourceFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.follow("readdir", name)
	if err != nil {
		return nil, err
	}
	return (&openFolder{node: n}).ReadDir(-1)
}

// as returns the node under the name of a symlink that led to it.
func (n *node) as(name string) *node {
	if name == n.path {
		return n
	}
	other := *n
	other.path = name
	return &other
}

// Name, Size, Mode, ModTime, IsDir and Sys implement [fs.FileInfo]; with Type
// and Info, [fs.DirEntry].
func (n *node) Name() string               { return path.Base(n.path) }
func (n *node) Size() int64                { return n.size }
func (n *node) Mode() fs.FileMode          { return n.mode }
func (n *node) ModTime() time.Time         { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }
func (n *node) IsDir() bool                { return n.mode.IsDir() }
func (n *node) Sys() any                   { return nil }
func (n *node) Type() fs.FileMode          { return n.mode.Type() }
func (n *node) Info() (fs.FileInfo, error) { return n, nil }
func (n *node) String() string             { return fs.FormatFileInfo(n) }

// openMember is an open file.
type openMember struct {
	node *node
	r    io.ReadCloser
}

func (o *openMember) Stat() (fs.FileInfo, error) { return o.node, nil }
func (o *openMember) Read(b []byte) (int, error) { return o.r.Read(b) }
func (o *openMember) Close() error               { return o.r.Close() }

// openFolder is an open folder.
type openFolder struct {
	node *node
	next int
}

func (o *openFolder) Stat() (fs.FileInfo, error) { return o.node, nil }
func (o *openFolder) Close() error               { return nil }

func (o *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.node.path, Err: fs.ErrInvalid}
}

// ReadDir implements [fs.ReadDirFile].
func (o *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := o.node.below[o.next:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	o.next += len(rest)
	entries := make([]fs.DirEntry, len(rest))
	for i, e := range rest {
		entries[i] = e
	}
	return entries, nil
}
