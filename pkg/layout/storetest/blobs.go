package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func nothingIsThere(t *testing.T, s layout.Store) {
	_, desc := Blob(1, 100)
	wantNoBlob(t, s, desc)
	desc.MediaType = ocispec.MediaTypeImageManifest
	if _, err := s.FetchManifest(t.Context(), desc); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("FetchManifest: got %v, want ErrNotFound", err)
	}
	for _, ref := range []string{"v1", string(desc.Digest), ""} {
		wantNoManifest(t, s, ref)
	}
}

func pushAndRead(t *testing.T, s layout.Store) {
	for i, n := range []int{1, 511, 1 << 16, 3<<20 + 7} {
		b, desc := Blob(byte(i), n)
		push(t, s, b, desc)
		wantBlob(t, s, b, desc)
	}
}

func pushReadsOnce(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 2<<20)
	var read, opened, last atomic.Int64
	open := func(ctx context.Context, off int64) (io.ReadCloser, error) {
		opened.Add(1)
		r, err := Opener(b)(ctx, off)
		return counted{r, &read, &opened}, err
	}
	sent := func(off int64) {
		if off < 0 || off > desc.Size {
			t.Errorf("was told the offset %d of %d", off, desc.Size)
		}
		last.Store(off)
	}
	if err := s.Push(t.Context(), layout.Layer{Descriptor: desc, Open: open}, layout.Watch{Moved: sent}); err != nil {
		t.Fatal(err)
	}
	if read.Load() != desc.Size || last.Load() != desc.Size {
		t.Errorf("read %d bytes, was told %d, want %d", read.Load(), last.Load(), desc.Size)
	}
	if opened.Load() != 0 {
		t.Errorf("%d readers are left open", opened.Load())
	}
	wantBlob(t, s, b, desc)
}

// counted counts what was read, and one down when it is closed.
type counted struct {
	r            io.ReadCloser
	read, opened *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func (c counted) Close() error { c.opened.Add(-1); return c.r.Close() }

func pushAgain(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 1000)
	push(t, s, b, desc)
	push(t, s, b, desc)
	wantBlob(t, s, b, desc)
}

func pushOfOtherBytes(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 300_000)
	flipped := bytes.Clone(b)
	flipped[len(b)-1] ^= 1
	for name, other := range map[string][]byte{
		"one bit":  flipped,
		"shorter":  b[:len(b)-1],
		"nothing":  nil,
		"longer":   append(bytes.Clone(b), 0),
		"far more": append(bytes.Clone(b), b...),
	} {
		err := s.Push(t.Context(), Layer(desc, other), layout.Watch{})
		if !errors.Is(err, layout.ErrDigest) {
			t.Errorf("%s: got %v, want ErrDigest", name, err)
		}
		wantNoBlob(t, s, desc)
	}
	push(t, s, b, desc)
	wantBlob(t, s, b, desc)
}

func pushOfABrokenSource(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 300_000)
	broken := errors.New("the disk is gone")
	for name, open := range map[string]layout.Opener{
		"opening": func(context.Context, int64) (io.ReadCloser, error) { return nil, broken },
		"reading": func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(b[:1000]), iotest.ErrReader(broken))), nil
		},
		"the end": func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(b), iotest.ErrReader(broken))), nil
		},
	} {
		if err := s.Push(t.Context(), layout.Layer{Descriptor: desc, Open: open}, layout.Watch{}); !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want %v", name, err, broken)
		}
		wantNoBlob(t, s, desc)
	}
}

func pushStops(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 4<<20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(ctx context.Context, off int64) (io.ReadCloser, error) {
		r, err := Opener(b)(ctx, off)
		return cancels{r, cancel}, err
	}
	if err := s.Push(ctx, layout.Layer{Descriptor: desc, Open: open}, layout.Watch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	wantNoBlob(t, s, desc)
}

// cancels ends the push that reads it, with the first read.
type cancels struct {
	io.ReadCloser
	cancel func()
}

func (c cancels) Read(b []byte) (int, error) {
	c.cancel()
	return c.ReadCloser.Read(b[:min(len(b), 1000)])
}

func badDescriptors(t *testing.T, s layout.Store) {
	b, good := Blob(1, 100)
	for _, dgst := range []digest.Digest{"", "sha256:", "sha256:../../x", "sha512:" + digest.Digest(good.Digest.Encoded()), digest.Digest("sha256:" + string(bytes.ToUpper([]byte(good.Digest.Encoded()))))} {
		desc := good
		desc.Digest = dgst
		if err := s.Push(t.Context(), Layer(desc, b), layout.Watch{}); err == nil {
			t.Errorf("pushes to the digest %q", dgst)
		}
		if _, err := s.Stat(t.Context(), dgst); err == nil {
			t.Errorf("finds the digest %q", dgst)
		}
	}
	desc := good
	desc.Size = -1
	if err := s.Push(t.Context(), Layer(desc, b), layout.Watch{}); err == nil {
		t.Error("pushes a negative size")
	}
	wantNoBlob(t, s, good)
}

func ranges(t *testing.T, s layout.Store) {
	b, desc := Blob(1, 100_000)
	push(t, s, b, desc)
	for _, r := range [][2]int64{{0, -1}, {0, 1}, {0, 100_000}, {1, -1}, {50_000, 1000}, {99_999, 1}, {99_999, -1}} {
		off, n := r[0], r[1]
		want := b[off:]
		if n >= 0 {
			want = b[off : off+n]
		}
		rc, err := s.OpenRange(t.Context(), desc, off, n)
		if err != nil {
			t.Errorf("%d bytes at %d: %v", n, off, err)
			continue
		}
		got, err := io.ReadAll(rc)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes at %d: got %d bytes, %v", n, off, len(got), err)
		}
		if err := rc.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, r := range [][2]int64{{0, 100_001}, {99_999, 2}, {100_001, -1}, {200_000, 1}, {-1, 5}} {
		rc, err := s.OpenRange(t.Context(), desc, r[0], r[1])
		if err != nil {
			continue
		}
		if _, err := io.ReadAll(rc); err == nil {
			t.Errorf("%d bytes at %d of %d: no error", r[1], r[0], desc.Size)
		}
		rc.Close()
	}
}
