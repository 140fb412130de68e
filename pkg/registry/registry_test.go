package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// quick is a policy that waits for nothing that a test has to wait for.
var quick = Policy{Attempts: 6, MinBackoff: time.Microsecond, MaxBackoff: 10 * time.Microsecond, Stall: 5 * time.Second}

// dial makes a client of a test's registry.
func dial(t testing.TB, r *registrytest.Registry, repo string, opts Options) *Repository {
	t.Helper()
	if opts.Policy.Attempts == 0 {
		opts.Policy = quick
	}
	return repositoryAt(t, r.Host, repo, opts)
}

// repositoryAt returns a repository of a host, with a client of its own.
func repositoryAt(t testing.TB, host, repo string, opts Options) *Repository {
	t.Helper()
	c, err := NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	got, err := c.Repository(host, repo)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// random returns n bytes that are the same for one seed.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = rng.Read(b)
	return b
}

// source is a blob's bytes, counted as they are read.
type source struct {
	b      []byte
	opened atomic.Int32
	read   atomic.Int64
}

func (s *source) open(_ context.Context, off int64) (io.ReadCloser, error) {
	s.opened.Add(1)
	return &sourceReader{s, bytes.NewReader(s.b[off:])}, nil
}

type sourceReader struct {
	s *source
	r *bytes.Reader
}

func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.s.read.Add(int64(n))
	return n, err
}

func (r *sourceReader) Close() error { return nil }

func describeBytes(b []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(b), Size: int64(len(b))}
}

func readAll(t testing.TB, rc io.ReadCloser, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// imageManifest is the smallest that names the blobs.
func imageManifest(t testing.TB, blobs ...ocispec.Descriptor) (ocispec.Descriptor, []byte) {
	t.Helper()
	b, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    blobs[0],
		Layers:    blobs[1:],
	})
	if err != nil {
		t.Fatal(err)
	}
	desc := describeBytes(b)
	desc.MediaType = ocispec.MediaTypeImageManifest
	return desc, b
}

func TestPushAndPull(t *testing.T) {
	ctx := t.Context()
	for name, conf := range map[string]registrytest.Config{
		"http":      {},
		"https":     {TLS: true},
		"http2":     {TLS: true, HTTP2: true},
		"basic":     {Auth: registrytest.Auth{Users: map[string]string{"u": "p"}}},
		"bearer":    {Auth: registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true}},
		"relative":  {Quirks: registrytest.Quirks{RelativeLocation: true}},
		"no digest": {Quirks: registrytest.Quirks{NoDigestHeader: true}},
		"no head":   {Quirks: registrytest.Quirks{NoHead: 401, NoManifestHead: 405}},
		"cdn":       {Quirks: registrytest.Quirks{CDN: true}},
		"cdn tls":   {TLS: true, Quirks: registrytest.Quirks{CDN: true}},
		"no ranges": {Quirks: registrytest.Quirks{NoRanges: true}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, conf)
			opts := Options{Credential: static("u", "p")}
			if conf.TLS {
				opts.CAFile = reg.CAFile(t)
			}
			repo := dial(t, reg, "org/m", opts)
			blobs := [][]byte{[]byte("{}"), {}, random(1, 3<<20), random(2, 1)}
			var descs []ocispec.Descriptor
			for _, b := range blobs {
				src := &source{b: b}
				desc := describeBytes(b)
				var last int64
				if err := repo.Push(ctx, layer(desc, src.open), layout.Watch{Moved: func(off int64) { last = off }}); err != nil {
					t.Fatal(err)
				}
				if got := src.read.Load(); got != desc.Size || last != desc.Size {
					t.Errorf("read %d and reported %d bytes of %d", got, last, desc.Size)
				}
				if got, ok := reg.Blob("org/m", desc.Digest); !ok || !bytes.Equal(got, b) {
					t.Errorf("the registry has other bytes than were pushed")
				}
				if size, err := repo.Stat(ctx, desc.Digest); err != nil || size != desc.Size {
					t.Errorf("Stat = %d, %v; want %d", size, err, desc.Size)
				}
				descs = append(descs, desc)
			}
			m, content := imageManifest(t, descs...)
			if err := repo.PutManifest(ctx, m, content, layout.PutOptions{Tags: []string{"1"}}); err != nil {
				t.Fatal(err)
			}
			for _, reference := range []string{"1", m.Digest.String()} {
				got, err := repo.Resolve(ctx, reference)
				if err != nil {
					t.Fatal(err)
				}
				if got.Digest != m.Digest || got.Size != m.Size || got.MediaType != m.MediaType {
					t.Errorf("Resolve(%q) = %v, want %v", reference, got, m)
				}
			}
			if got, err := repo.FetchManifest(ctx, m); err != nil || !bytes.Equal(got, content) {
				t.Errorf("FetchManifest = %q, %v", got, err)
			}
			for i, desc := range descs {
				rc, err := repo.OpenRange(ctx, desc, 0, -1)
				if got := readAll(t, rc, err); !bytes.Equal(got, blobs[i]) {
					t.Errorf("blob %d comes back different", i)
				}
			}
			rc, err := repo.OpenRange(ctx, descs[2], 1<<20, 1000)
			if got := readAll(t, rc, err); !bytes.Equal(got, blobs[2][1<<20:1<<20+1000]) {
				t.Error("the range comes back different")
			}
			if n := reg.Uploads(); n != 0 {
				t.Errorf("%d uploads are left open", n)
			}
		})
	}
}

var _ layout.Opener = (*source)(nil).open

// layer is a blob to push.
func layer(desc ocispec.Descriptor, open layout.Opener) layout.Layer {
	return layout.Layer{Descriptor: desc, Open: open}
}

// opener opens bytes, and ends with err where there is one.
func opener(b []byte, err ...error) layout.Opener {
	return func(_ context.Context, off int64) (io.ReadCloser, error) {
		r := io.Reader(bytes.NewReader(b[min(off, int64(len(b))):]))
		if len(err) > 0 {
			r = io.MultiReader(r, failing{err[0]})
		}
		return io.NopCloser(r), nil
	}
}

// checkError wants one printable line of a kind, that says something and hints
// at something.
func checkError(t testing.TB, err, kind error, says, hints string) {
	t.Helper()
	switch {
	case err == nil:
		t.Fatal("got no error")
	case kind != nil && !errors.Is(err, kind):
		t.Errorf("got %v, want it to be %v", err, kind)
	case !strings.Contains(err.Error(), says):
		t.Errorf("got %q, want it to say %q", err, says)
	case strings.ContainsAny(err.Error(), "\n\r\x1b"):
		t.Errorf("%q is not one printable line", err)
	}
	if got := fmt.Sprint(hint.Of(err)); !strings.Contains(got, hints) {
		t.Errorf("got the hint %q, want it to say %q", got, hints)
	}
}
