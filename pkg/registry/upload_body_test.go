package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// newBody makes a body of a blob from an offset to its end.
func newBody(ctx context.Context, c *content, tr *hashCheckpoints, off int64) *body {
	s := newBlobReader(ctx, c, tr)
	b := &body{reader: s, end: c.desc.Size}
	if err := s.seek(off); err != nil {
		b.fail(err)
	}
	return b
}

// TestBodyFromAnywhere: from every offset come the right bytes, the hash is
// that of the whole, and of what came before no more is read than lies behind
// the last checkpoint.
func TestBodyFromAnywhere(t *testing.T) {
	const size = 20 << 20
	src := &source{b: random(1, size)}
	c := &content{desc: describeBytes(src.b), open: src.open}
	tr := newCheckpoints(size)
	if _, err := io.Copy(io.Discard, newBody(t.Context(), c, tr, 0)); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{0, 1, tr.every - 1, tr.every, tr.every + 1, 2*tr.every + 70_000, size - 1, size} {
		src.read.Store(0)
		b := newBody(t.Context(), c, tr, off)
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, src.b[off:]) {
			t.Errorf("from %d: got %d bytes, %v", off, len(got), err)
		}
		if done, own := b.outcome(); !done || own != nil {
			t.Errorf("from %d: done %v, %v", off, done, own)
		}
		if again := src.read.Load() - int64(len(got)); again > tr.every+64<<10 {
			t.Errorf("from %d: read %d bytes again, want at most %d", off, again, tr.every)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := b.Read(make([]byte, 1)); err == nil {
			t.Errorf("from %d: reads after Close", off)
		}
	}
}

// TestBodyWithholds: of a wrong blob the last bytes never come, wherever it is
// wrong and however it is read.
func TestBodyWithholds(t *testing.T) {
	good := random(1, 100_000)
	for _, at := range []int{0, 50_000, 99_999} {
		wrong := bytes.Clone(good)
		wrong[at] ^= 1
		for _, chunk := range []int{1 << 20, 4096, 1000, 7} {
			c := &content{desc: describeBytes(good), open: opener(wrong)}
			b := newBody(t.Context(), c, newCheckpoints(100_000), 0)
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{b}, make([]byte, chunk))
			if !errors.Is(err, layout.ErrDigest) || n >= 100_000 {
				t.Errorf("wrong at %d, by %d: got %d bytes and %v", at, chunk, n, err)
			}
			if done, own := b.outcome(); done || own == nil {
				t.Errorf("wrong at %d, by %d: done %v, %v", at, chunk, done, own)
			}
		}
	}
}

// TestBodySources: sources may answer in every way that io.Reader allows.
func TestBodySources(t *testing.T) {
	b := random(1, 10_000)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"plain":           func(r io.Reader) io.Reader { return r },
		"byte by byte":    iotest.OneByteReader,
		"by halves":       iotest.HalfReader,
		"data with EOF":   iotest.DataErrReader,
		"often nothing":   func(r io.Reader) io.Reader { return &lazy{r: r} },
		"nothing forever": func(io.Reader) io.Reader { return &lazy{r: eternal{}} },
		"broken":          func(r io.Reader) io.Reader { return iotest.TimeoutReader(iotest.OneByteReader(r)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &content{desc: describeBytes(b), open: func(_ context.Context, off int64) (io.ReadCloser, error) {
				return io.NopCloser(wrap(bytes.NewReader(b[off:]))), nil
			}}
			got, err := io.ReadAll(newBody(t.Context(), c, newCheckpoints(10_000), 100))
			switch name {
			case "nothing forever":
				if !errors.Is(err, io.ErrNoProgress) {
					t.Errorf("got %v, want ErrNoProgress", err)
				}
			case "broken":
				if !errors.Is(err, iotest.ErrTimeout) {
					t.Errorf("got %v, want ErrTimeout", err)
				}
			default:
				if err != nil || !bytes.Equal(got, b[100:]) {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
			}
		})
	}
}

// lazy answers with nothing every other time.
type lazy struct {
	r io.Reader
	n int
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.n++; l.n%2 == 1 {
		return 0, nil
	}
	return l.r.Read(p)
}

type eternal struct{}

func (eternal) Read([]byte) (int, error) { return 0, nil }

// TestBodyClosed: a source that is told to stop has not failed.
func TestBodyClosed(t *testing.T) {
	waits := func(ctx context.Context, _ int64) (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func([]byte) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})), nil
	}
	b := newBody(t.Context(), &content{desc: describeBytes(random(1, 10)), open: waits}, newCheckpoints(10), 0)
	read := make(chan error, 1)
	go func() {
		_, err := b.Read(make([]byte, 1))
		read <- err
	}()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; err == nil {
		t.Error("Read returned no error")
	}
	if done, own := b.outcome(); done || own != nil {
		t.Errorf("done %v, %v", done, own)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestChunksOfOneStream: bodies that follow each other read a source once, and
// the last knows whether the whole was right.
func TestChunksOfOneStream(t *testing.T) {
	good := random(1, 100_000)
	for name, wrong := range map[string]bool{"right": false, "wrong": true} {
		src := &source{b: bytes.Clone(good)}
		if wrong {
			src.b[10]++
		}
		s := newBlobReader(t.Context(), &content{desc: describeBytes(good), open: src.open}, newCheckpoints(100_000))
		if err := s.seek(0); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for _, end := range []int64{10_000, 10_002, 99_998, 100_000} {
			b := &body{reader: s, end: end}
			chunk, err := io.ReadAll(b)
			got = append(got, chunk...)
			done, own := b.outcome()
			if last := end == 100_000; wrong && last {
				if !errors.Is(err, layout.ErrDigest) || own == nil || done || len(chunk) > 0 {
					t.Errorf("%s: to %d: got %d bytes, %v, done %v, %v", name, end, len(chunk), err, done, own)
				}
			} else if err != nil || !done || own != nil {
				t.Errorf("%s: to %d: %v, done %v, %v", name, end, err, done, own)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if !wrong && !bytes.Equal(got, good) {
			t.Errorf("%s: got %d bytes, and others", name, len(got))
		}
		if n := src.opened.Load(); n != 1 {
			t.Errorf("%s: opened %d times", name, n)
		}
	}
}

// TestCheckpointsAreFew: they are few however large the blob.
func TestCheckpointsAreFew(t *testing.T) {
	const size = 100 << 30
	tr := newCheckpoints(size)
	_, h := tr.before(0)
	for off := int64(0); off <= size; off += 1 << 20 {
		tr.add(off, h)
	}
	if n := len(tr.list); n == 0 || n > 1000 {
		t.Errorf("got %d checkpoints", n)
	}
	if small := newCheckpoints(1000); small.every <= 1000 {
		t.Errorf("a checkpoint every %d bytes of 1000", small.every)
	}
	if off, _ := tr.before(size / 2); off <= size/2-2*tr.every || off > size/2 {
		t.Errorf("the checkpoint before %d is %d", int64(size/2), off)
	}
	if tr.reached() != size {
		t.Errorf("reached %d of %d", tr.reached(), int64(size))
	}
}

// TestPushAtRandom breaks uploads at random places, in random ways, at
// registries of random kinds. What arrives is right, or there is an error.
func TestPushAtRandom(t *testing.T) {
	const size = 1 << 20
	b := random(1, size)
	desc := describeBytes(b)
	arrived := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		maybe := func() bool { return rng.IntN(3) == 0 }
		q := registrytest.Quirks{
			RelativeLocation: maybe(), NoStatus: maybe(), StuckRange: maybe(), OneShot: rng.IntN(8) == 0,
			QuayRange: maybe(), NewLocation: maybe(), NoDigestHeader: maybe(),
		}
		reg := registrytest.New(t, registrytest.Config{Quirks: q})
		what := ""
		for range 1 + rng.IntN(4) {
			n := rng.Int64N(size + 1)
			f := registrytest.Fault{Methods: "PUT", After: rng.IntN(2)}
			switch rng.IntN(6) {
			case 0:
				f.Methods, f.Effect = "GET", registrytest.Answer(500, "")
			case 1:
				f.Effect = registrytest.Answer(503, "")
			case 2:
				f.Effect = registrytest.LoseAnswer
			case 3:
				f.Methods, f.Effect = "GET", registrytest.Answer(204, "", "Range", fmt.Sprintf("0-%d", n))
			default:
				f.Effect = registrytest.CutIn(n)
			}
			what += fmt.Sprintf("%s %d; ", f.Methods, n)
			reg.Break(f)
		}
		err := dial(t, reg, "org/m", Options{}).Push(t.Context(), layer(desc, opener(b)), layout.Watch{})
		got, ok := reg.Blob("org/m", desc.Digest)
		switch {
		case err == nil && (!ok || !bytes.Equal(got, b)):
			t.Errorf("seed %d (%s%+v): no error, and other bytes", seed, what, q)
		case reg.Uploads() != 0:
			t.Errorf("seed %d (%s%+v): %v, and an upload is left open", seed, what, q, err)
		case err == nil:
			arrived++
		default:
			t.Logf("seed %d (%s%+v): %v", seed, what, q, err)
		}
	}
	if arrived < 55 {
		t.Errorf("%d of 60 blobs arrived: too little was tried again", arrived)
	}
}
