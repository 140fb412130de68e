package convert

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// gate lets a request for a blob pass when its gate lets it.
type gate struct {
	*shelf
	pass func(ctx context.Context, dgst digest.Digest) error
}

func (g gate) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	if err := g.pass(ctx, desc.Digest); err != nil {
		return nil, err
	}
	return g.shelf.OpenRange(ctx, desc, off, n)
}

func infoDigest(src carton.Source) digest.Digest {
	e, _ := src.Manifest().Lookup(carton.InfoName)
	return digestOf(e.Hash)
}

// MANIFEST, carton.toml and a config that will be read are asked for before any of
// them has come.
func TestWhatOpeningReadsIsFetchedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		opts OpenOptions
		want int
	}{"": {OpenOptions{}, 2}, "and the config": {OpenOptions{ReadsConfig: true}, 3}} {
		t.Run(name, func(t *testing.T) {
			s, desc, _ := pushed(t, kinds(), Options{})
			var all sync.WaitGroup
			all.Add(c.want)
			pass := func(context.Context, digest.Digest) error {
				all.Done() // a request more would panic
				all.Wait()
				return nil
			}
			src, err := Open(t.Context(), gate{s, pass}, desc, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			if _, err := carton.ReadInfo(t.Context(), src); err != nil {
				t.Error(err)
			}
			if c.opts.ReadsConfig {
				if _, err := src.Config(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A carton.toml that nobody asks for may be slow, or fail, or be damaged: who opens
// the artifact does not learn of it, who reads it does, and may try again.
func TestACartonTomlThatFails(t *testing.T) {
	s, desc, a := pushed(t, kinds(), Options{})
	broken, tries := errors.New("broken"), 0
	src, err := Open(t.Context(), gate{s, func(_ context.Context, d digest.Digest) error {
		if d != infoDigest(kinds()) {
			return nil
		}
		if tries++; tries == 1 {
			return broken
		}
		return nil
	}}, desc, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := carton.ReadInfo(t.Context(), src); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the request", err)
	}
	if _, err := carton.ReadInfo(t.Context(), src); err != nil {
		t.Errorf("again: %v", err)
	}
	s.blobs[a.Layers[1].Digest] = make([]byte, a.Layers[1].Size)
	if _, err := carton.ReadInfo(t.Context(), opened(t, s, desc, OpenOptions{})); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("damaged: got %v", err)
	}
	s.blobs[a.Layers[1].Digest] = nil
	if _, err := carton.ReadInfo(t.Context(), opened(t, s, desc, OpenOptions{})); !errors.Is(err, carton.ErrChecksum) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("empty: got %v", err)
	}
}

// Closing the source ends what is under way, and who waits for it.
func TestCloseEndsThePrefetch(t *testing.T) {
	s, desc, _ := pushed(t, kinds(), Options{})
	src, err := Open(t.Context(), gate{s, func(ctx context.Context, d digest.Digest) error {
		if d == infoDigest(kinds()) {
			<-ctx.Done()
		}
		return ctx.Err()
	}}, desc, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := carton.ReadInfo(late, src); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the caller's patience", err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if _, err := carton.ReadInfo(t.Context(), src); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v, want %v", err, fs.ErrClosed)
	}
}

// What is large is fetched when it is asked for.
func TestLargeFilesAreNotFetchedAhead(t *testing.T) {
	s, desc, _ := pushed(t, cartontest.New(map[string][]byte{
		"model/w.bin": make([]byte, 9),
	}, nil, cartontest.WithContent(carton.InfoName, cartontest.Zeros(maxPrefetch+1))), Options{AllowInvalid: true})
	opened(t, s, desc, OpenOptions{})
	if len(s.requests) != 1 {
		t.Errorf("got the requests %q, want one for MANIFEST", s.requests)
	}
}
