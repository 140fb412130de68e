package carton_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// large is a member that Stream does not keep in memory.
func large() []byte {
	b := make([]byte, carton.StreamBuffer+1)
	for i := range b {
		b[i] = byte(i >> 8)
	}
	return b
}

// What is streamed is what is written to a file, bit for bit: small members are read
// once and large ones twice.
func TestStreamWritesThePlan(t *testing.T) {
	files := planFiles()
	files["model/large"] = large()
	src := cartontest.New(files, planLinks())
	name := filepath.Join(t.TempDir(), "m.carton")
	if err := carton.Assemble(t.Context(), name, cartontest.New(files, planLinks()), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	want := onlyFile(t, filepath.Dir(name), "m.carton")
	var got bytes.Buffer
	var done, total int64
	err := carton.Stream(t.Context(), &got, src, carton.StreamOptions{Progress: func(e progress.Event) {
		switch e.State {
		case progress.Started:
			total += e.Total
		case progress.Finished:
			done += e.Done
		case progress.Moving:
			if e.Done > e.Total {
				t.Errorf("%s: got %d of %d", e.Name, e.Done, e.Total)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got %d bytes that differ from the file's %d", got.Len(), len(want))
	}
	if done != total || total < 2*carton.StreamBuffer {
		t.Errorf("got %d of %d bytes told", done, total)
	}
	if a, b := src.Opens("model/large"), src.Opens("model/config.json"); a != 2 || b != 1 {
		t.Errorf("got %d and %d reads, want two of the large member and one of a small one", a, b)
	}
	if n := src.Unclosed(); n != 0 {
		t.Errorf("%d readers were left open", n)
	}
	// A zip has the CRCs: everything is read once.
	zip, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer zip.Close()
	once := &readCount{Source: zip, opens: map[string]int{}}
	got.Reset()
	if err := carton.Stream(t.Context(), &got, once, carton.StreamOptions{}); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got %d bytes of a zip, want the same %d: %v", got.Len(), len(want), err)
	}
	if once.opens["model/large"] != 1 {
		t.Errorf("got %d reads of a member whose CRC is known, want 1", once.opens["model/large"])
	}
}

type readCount struct {
	carton.Source
	opens map[string]int
}

func (r *readCount) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	r.opens[path]++
	return r.Source.Open(ctx, path)
}

// What is wrong ends the stream with an error before the zip's end, and where it is
// known beforehand, before the member's first byte.
func TestStreamOfWhatIsWrong(t *testing.T) {
	files := map[string][]byte{carton.InfoName: []byte("x"), "model/a": []byte("first"), "model/b": large()}
	whole := cartontest.New(files, nil)
	var want bytes.Buffer
	if err := carton.Stream(t.Context(), &want, whole, carton.StreamOptions{}); err != nil {
		t.Fatal(err)
	}
	spoil := func(path string, from int) cartontest.OpenHook {
		return func(p string, before int, r io.Reader) (io.Reader, error) {
			if p != path || before < from {
				return r, nil
			}
			b, err := io.ReadAll(r)
			b[len(b)-1] ^= 1
			return bytes.NewReader(b), err
		}
	}
	for name, c := range map[string]struct {
		hook        cartontest.OpenHook
		least, most int
	}{
		"a small member":           {spoil("model/a", 0), 0, 0},
		"a large one":              {spoil("model/b", 0), 1, 4096},
		"a large one, second time": {spoil("model/b", 1), carton.StreamBuffer, want.Len() - 200},
		"one that can't be read": {func(p string, _ int, r io.Reader) (io.Reader, error) {
			if p == carton.InfoName {
				return nil, carton.ErrChecksum
			}
			return r, nil
		}, carton.StreamBuffer, want.Len() - 200},
	} {
		var got bytes.Buffer
		err := carton.Stream(t.Context(), &got, cartontest.New(files, nil, cartontest.WithOpen(c.hook)), carton.StreamOptions{})
		if !errors.Is(err, carton.ErrChecksum) {
			t.Errorf("%s: got %v, want ErrChecksum", name, err)
		}
		if got.Len() < c.least || got.Len() > c.most {
			t.Errorf("%s: got %d bytes, want %d to %d", name, got.Len(), c.least, c.most)
		}
		if _, err := carton.NewReader(bytes.NewReader(got.Bytes()), int64(got.Len())); err == nil {
			t.Errorf("%s: what was written is taken for a carton", name)
		}
	}
	// Whoever does not read on ends it.
	if err := carton.Stream(t.Context(), failingWriter{}, whole, carton.StreamOptions{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

var errFull = errors.New("full")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }
