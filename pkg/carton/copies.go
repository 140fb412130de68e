package carton

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/carton-oci/carton-oci/internal/localfile"
)

// Copies are places on this machine where content of members may be already: an
// older version of the same model, say. [Assemble] and [Extract] copy from them what
// has the right hash, and read only the rest from their source.
//
// A carton is asked by hash, a plain folder by path and size. What either says is a
// hint and no more: each copy is hashed as it is made, and where it is other
// content, or can't be read, the member is read from the source. The zero value holds
// none. Add and Close are not for several goroutines at once.
type Copies struct {
	cartons []Source
	byHash  map[string]copyAt
	folders []copyFolder

	mu      sync.Mutex
	used    int64
	refused []error
}

// copyAt is a member of a carton that is here.
type copyAt struct {
	src  Source
	name string // of the carton, for people
	Member
}

// copyFolder is a plain folder that holds members below prefix.
type copyFolder struct {
	root   *os.Root
	prefix string
}

// AddCarton adds a carton called name, which [Copies.Close] closes. Members that
// are linked, or that lie behind others in one stream, are not taken from it.
func (c *Copies) AddCarton(ctx context.Context, name string, src Source) error {
	members, err := src.Members(ctx)
	if err != nil {
		return err
	}
	if c.byHash == nil {
		c.byHash = map[string]copyAt{}
	}
	c.cartons = append(c.cartons, src)
	for _, m := range members {
		if _, ok := c.byHash[m.Hash]; !ok && m.Target == "" && m.Bundle == 0 && m.Place != PlaceLinked {
			c.byHash[m.Hash] = copyAt{src, name, m}
		}
	}
	return nil
}

// AddFolder adds a plain folder that may hold what lies below a folder of the
// carton; "" is its root. Symlinks in it are not read.
func (c *Copies) AddFolder(dir, folder string) error {
	root, err := localfile.OpenRoot(dir)
	if err != nil {
		return err
	}
	c.folders = append(c.folders, copyFolder{root, folderPrefix(folder)})
	return nil
}

// Used returns how many bytes of members were copied, and had their hash.
func (c *Copies) Used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// Refused returns why members were not copied that a carton lists.
func (c *Copies) Refused() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// Close closes what was added, and forgets it. A nil Copies has nothing to close.
func (c *Copies) Close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, src := range c.cartons {
		errs = append(errs, src.Close())
	}
	for _, f := range c.folders {
		errs = append(errs, f.root.Close())
	}
	c.cartons, c.byHash, c.folders = nil, nil, nil
	return errors.Join(errs...)
}

// has reports whether a member may be here. A nil Copies has nothing.
func (c *Copies) has(m Member) bool {
	if c == nil {
		return false
	}
	if _, ok := c.carton(m); ok {
		return true
	}
	_, _, ok := c.file(m)
	return ok
}

// carton returns where a carton has a member's content.
func (c *Copies) carton(m Member) (copyAt, bool) {
	at, ok := c.byHash[m.Hash]
	return at, ok && (m.Size < 0 || at.Size == m.Size)
}

// file returns the file that may be a member's in a plain folder.
func (c *Copies) file(m Member) (*os.Root, string, bool) {
	for _, f := range c.folders {
		name, ok := strings.CutPrefix(m.Path, f.prefix)
		if !ok || m.Size < 0 {
			continue
		}
		name = filepath.FromSlash(name)
		if fi, err := f.root.Lstat(name); err == nil && fi.Mode().IsRegular() && fi.Size() == m.Size {
			return f.root, name, true
		}
	}
	return nil, "", false
}

// open opens a member. The reader returns io.EOF only if it had the hash.
func (c *Copies) open(ctx context.Context, m Member) (io.ReadCloser, error) {
	r := &copyReader{copies: c}
	if at, ok := c.carton(m); ok {
		r.name = at.name
		body, err := at.src.Open(ctx, at.Path)
		if err != nil {
			return nil, r.failed(err)
		}
		r.ReadCloser = body // verified: m.Hash is what the carton's MANIFEST lists
		return r, nil
	}
	root, name, ok := c.file(m)
	if !ok {
		return nil, errCopyGone
	}
	f, err := localfile.OpenItself(root, name)
	if err != nil {
		return nil, err
	}
	r.ReadCloser = verify(f, m.Path, m.Hash, m.Size, 0)
	return r, nil
}

var errCopyGone = errors.New("the copy that was here is gone")

// copyReader reads one copy, and counts it at its end.
type copyReader struct {
	io.ReadCloser
	copies *Copies
	name   string // of the carton, "" for a plain folder
	n      int64
}

func (r *copyReader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.n += int64(n)
	switch {
	case err == io.EOF: //nolint:errorlint // a wrapped one is an error
		r.copies.mu.Lock()
		defer r.copies.mu.Unlock()
		r.copies.used += r.n
	case err != nil:
		err = r.failed(err)
	}
	return n, err
}

// failed notes why a copy did not do. A plain folder has promised nothing.
func (r *copyReader) failed(err error) error {
	if r.name == "" {
		return err
	}
	err = fmt.Errorf("%s: %w", r.name, err)
	r.copies.mu.Lock()
	defer r.copies.mu.Unlock()
	r.copies.refused = append(r.copies.refused, err)
	return err
}
