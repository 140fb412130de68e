package convert

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// shelf is a layout.Fetcher in memory that counts what is asked of it.
type shelf struct {
	layout.Fetcher // which lists nothing

	mu       sync.Mutex
	blobs    map[digest.Digest][]byte
	requests []string // "DIGEST OFF+N" of each blob request
	sent     int64    // bytes of blobs that were read
	open     int      // bodies that are not closed
	wrap     func(digest.Digest, io.Reader) io.Reader
}

func newShelf() *shelf { return &shelf{blobs: map[digest.Digest][]byte{}} }

func (s *shelf) Resolve(context.Context, string) (ocispec.Descriptor, error) {
	return ocispec.Descriptor{}, layout.ErrNotFound
}

func (s *shelf) ResolveManifest(context.Context, string) (ocispec.Descriptor, []byte, error) {
	return ocispec.Descriptor{}, nil, layout.ErrNotFound
}

func (s *shelf) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	b, ok := s.blobs[desc.Digest]
	if !ok {
		return nil, layout.ErrNotFound
	}
	return b, ctx.Err()
}

func (s *shelf) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[desc.Digest]
	if !ok {
		return nil, fmt.Errorf("%s: %w", desc.Digest, layout.ErrNotFound)
	}
	if off < 0 || off > int64(len(b)) {
		return nil, fmt.Errorf("offset %d of %d", off, len(b))
	}
	s.requests = append(s.requests, fmt.Sprintf("%s %d+%d", desc.Digest, off, n))
	b = b[off:]
	if n >= 0 {
		b = b[:min(n, int64(len(b)))]
	}
	var r io.Reader = bytes.NewReader(b)
	if s.wrap != nil {
		r = s.wrap(desc.Digest, r)
	}
	s.open++
	return &body{shelf: s, r: r, ctx: ctx}, nil
}

// body ends with its context, as a connection does.
type body struct {
	shelf  *shelf
	r      io.Reader
	ctx    context.Context //nolint:containedctx // a body belongs to its request
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	b.shelf.mu.Lock()
	defer b.shelf.mu.Unlock()
	b.shelf.sent += int64(n)
	return n, err
}

func (b *body) Close() error {
	b.shelf.mu.Lock()
	defer b.shelf.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.shelf.open--
	}
	return nil
}

// reset forgets what was asked.
func (s *shelf) reset() { s.requests, s.sent = nil, 0 }

// keep stores bytes and returns their descriptor.
func (s *shelf) keep(mediaType string, b []byte) ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	s.blobs[d.Digest] = b
	return d
}

// put stores an artifact whole. Every layer must have the bytes that its
// descriptor promises.
func (s *shelf) put(t testing.TB, a *layout.Artifact) ocispec.Descriptor {
	t.Helper()
	for _, l := range append(slices.Clone(a.Layers), a.Config) {
		r, err := l.Open(t.Context(), 0)
		if err != nil {
			t.Fatalf("%s: %v", l.Name, err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", l.Name, err)
		}
		if err := r.Close(); err != nil {
			t.Fatalf("%s: %v", l.Name, err)
		}
		if got := s.keep(l.MediaType, b); got.Digest != l.Digest || got.Size != l.Size {
			t.Fatalf("%s: got %s of %d bytes, want %s of %d", l.Name, got.Digest, got.Size, l.Digest, l.Size)
		}
	}
	if got := s.keep(a.MediaType, a.Manifest); got.Digest != a.Digest || got.Size != a.Size {
		t.Fatalf("image manifest: got %+v, want %+v", got, a.Descriptor)
	}
	return a.Descriptor
}

// artifactOf makes the artifact of a carton.
func artifactOf(ctx context.Context, src carton.Source, opts Options) (*layout.Artifact, error) {
	forms, err := Build(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	return forms.Artifact, nil
}

// pushed makes an artifact of a carton and stores it.
func pushed(t testing.TB, src carton.Source, opts Options) (*shelf, ocispec.Descriptor, *layout.Artifact) {
	t.Helper()
	a, err := artifactOf(t.Context(), src, opts)
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf()
	desc := s.put(t, a)
	return s, desc, a
}

// opened opens an artifact, and closes it when the test ends. Then nothing may
// be left open.
func opened(t testing.TB, s *shelf, desc ocispec.Descriptor, opts OpenOptions) *Source {
	t.Helper()
	src, err := Open(t.Context(), s, desc, opts)
	if err != nil {
		t.Fatal(err)
	}
	src.fetcher.running.Wait() // so that a test may count requests
	t.Cleanup(func() {
		src.Close()
		if s.open != 0 {
			t.Errorf("%d bodies are open after Close", s.open)
		}
	})
	return src
}

// content reads a member.
func content(t testing.TB, src carton.Source, path string) string {
	t.Helper()
	r, err := src.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
