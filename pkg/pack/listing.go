package pack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"golang.org/x/sync/errgroup"
)

// Listing is a folder that is somewhere else: the files of a hub's repository at
// one revision.
type Listing struct {
	Files []Listed
	// Repository is where they are, as in "org/name", and Revision the commit.
	Repository, Revision string
}

// Listed is a file of a listing. Only what has no hash is read to be packed, and
// the beginnings of files that say what they are.
type Listed struct {
	// Path is its name in the folder, slash-separated.
	Path string
	// Size is its content's, in bytes.
	Size int64
	// Hash is its content's sha256 in lower-case hex, "" where the list has none. It
	// is believed until the content is read: then it is checked.
	Hash string
	// OpenRange opens n bytes of the content from off, within its Size.
	OpenRange func(ctx context.Context, off, n int64) (io.ReadCloser, error)
}

const (
	// listedAtOnce is how many files of a listing are read at once.
	listedAtOnce = 8
	// headBytes is how much is read of a file that says what it is, before it is
	// known how much that is: most headers of weights fit in.
	headBytes = 64 << 10
	// keptBytes bounds the memory for contents and beginnings, so that a small file
	// is fetched once.
	keptBytes = 8 << 20
)

// OpenListing is [Open] of a folder that is somewhere else. The carton is the one
// that Open makes of a folder with the same files.
func OpenListing(ctx context.Context, l Listing, opts Options) (*Carton, error) {
	return pack(opts, func(p *packer) error {
		return p.run(ctx, func() error { return p.collectListing(ctx, l) })
	})
}

// ViewListing is [OpenLoose] of a folder that is somewhere else. The hashes of its
// members are true, and what is opened is verified by them.
func ViewListing(ctx context.Context, l Listing, opts Options) (*Carton, error) {
	opts.AllowInvalid = true
	return pack(opts, func(p *packer) error {
		collect := func() error { return p.collectListing(ctx, l) }
		if err := p.look(ctx, collect); err != nil {
			return err
		}
		if err := p.hashAll(ctx); err != nil {
			return err
		}
		src, err := newSource(p.files, nil)
		p.out.Source = src
		return err
	})
}

// collectListing finds the files of a listing.
func (p *packer) collectListing(ctx context.Context, l Listing) error {
	files := newListFS(ctx, l.Files)
	if isCartonIn(files) {
		return hint.With(ErrCarton, "download its files into a folder, and push that as it is: %s", hint.Push)
	}
	w := &walk{below: modelFolder, paths: &p.paths}
	err := p.whatFolder(w, files)
	if err != nil {
		return err
	}
	if w.rules, err = p.rulesOf(files); err != nil {
		return err
	}
	for i := range l.Files {
		x := &l.Files[i]
		switch {
		case slices.Contains(w.skip, x.Path):
			continue
		case w.rules.leavesPath(x.Path):
			w.leftOut = append(w.leftOut, x.Path)
			continue
		}
		f := &file{
			path: w.below + x.Path, name: x.Path, size: x.Size, hash: x.Hash,
			remote: &remote{Listed: x, ctx: ctx},
		}
		if err := w.keep(f); err != nil {
			return err
		}
	}
	if err := p.took(w); err != nil {
		return err
	}
	p.out.Repository, p.out.Snapshot = l.Repository, l.Revision
	return p.readHeads(ctx)
}

// readHeads reads small files, and the beginnings of those that say what they are,
// several at a time: each costs a request, and they are looked into one by one.
func (p *packer) readHeads(ctx context.Context) error {
	left := int64(keptBytes)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(listedAtOnce)
	for _, f := range p.files {
		if f.remote == nil {
			continue
		}
		n := int64(0)
		switch {
		case f.hash == "":
			n = f.size
		case formatOf(f.path) != "", f.size <= maxPointerBytes:
			n = min(f.size, headBytes)
		}
		if n == 0 || n > left {
			continue
		}
		left -= n
		g.Go(func() (err error) {
			f.remote.head, err = f.remote.read(ctx, 0, n)
			return err
		})
	}
	return g.Wait()
}

// remote is the content of a listed file.
type remote struct {
	*Listed
	ctx  context.Context //nolint:containedctx // the call's that packs, for io.ReaderAt
	head []byte          // the content's beginning, or all of it
}

// read reads n bytes from off.
func (r *remote) read(ctx context.Context, off, n int64) ([]byte, error) {
	body, err := r.OpenRange(ctx, off, n)
	if err != nil {
		return nil, r.failed(err)
	}
	defer body.Close()
	data := make([]byte, n)
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, r.failed(err)
	}
	if _, err := body.Read(make([]byte, 1)); err != io.EOF {
		return nil, r.failed(err) // what checks the content says so at its end
	}
	return data, nil
}

func (r *remote) failed(err error) error { return fmt.Errorf("%s: %w", r.Path, iox.Unexpected(err)) }

// openRange opens a part of the content, which is in memory or not.
func (r *remote) openRange(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	if off+n <= int64(len(r.head)) {
		return io.NopCloser(bytes.NewReader(r.head[off : off+n])), nil
	}
	return r.OpenRange(ctx, off, n)
}

// open opens the content to be read in order, or here and there.
func (r *remote) open() content {
	c := &remoteContent{remote: r}
	c.ahead = readahead.New(r.Size, func(off, n int64) ([]byte, error) { return r.read(r.ctx, off, n) })
	return c
}

type remoteContent struct {
	*remote
	ahead *readahead.Reader
	pos   int           // of the next Read, in head
	body  io.ReadCloser // what follows head, nil before it is read
}

// Read implements io.Reader, by one request for what is not in memory.
func (c *remoteContent) Read(p []byte) (int, error) {
	if c.pos < len(c.head) {
		n := copy(p, c.head[c.pos:])
		c.pos += n
		return n, nil
	}
	off := int64(c.pos)
	if off == c.Size {
		return 0, io.EOF
	}
	if c.body == nil {
		body, err := c.OpenRange(c.ctx, off, c.Size-off)
		if err != nil {
			return 0, c.failed(err)
		}
		c.body = body
	}
	return c.body.Read(p)
}

// ReadAt implements io.ReaderAt.
func (c *remoteContent) ReadAt(p []byte, off int64) (int, error) {
	if off >= 0 && off+int64(len(p)) <= int64(len(c.head)) {
		return copy(p, c.head[off:]), nil
	}
	if int64(len(c.head)) == c.Size { // all there is
		return bytes.NewReader(c.head).ReadAt(p, off)
	}
	return c.ahead.ReadAt(p, off)
}

// Close implements io.Closer.
func (c *remoteContent) Close() error {
	if c.body == nil {
		return nil
	}
	return c.body.Close()
}
