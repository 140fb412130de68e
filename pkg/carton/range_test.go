package carton_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// rangeSources are one carton in all the forms whose ranges are made here.
func rangeSources(t *testing.T, content string) map[string]carton.Source {
	t.Helper()
	sources := map[string]carton.Source{}
	for name, method := range map[string]uint16{"stored": 0, "deflate": 8, "zstd": 93} {
		z := zipOf("model/a", content, carton.InfoName, minimalInfo)
		z.files[0].compress(t, method)
		src, err := openBoth(t, z.bytes())
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = src
	}
	files := fstest.MapFS{
		"model/a":           {Data: []byte(content)},
		carton.InfoName:     {Data: []byte(minimalInfo)},
		carton.ManifestName: {Data: []byte(manifestOf("model/a", content, carton.InfoName, minimalInfo))},
	}
	src, err := carton.OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	sources["in memory"] = src
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "c"), files); err != nil {
		t.Fatal(err)
	}
	if sources["folder"], err = carton.OpenDir(filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	return sources
}

func TestRanges(t *testing.T) {
	content := strings.Repeat("0123456789", 10_000)
	size := int64(len(content))
	for name, src := range rangeSources(t, content) {
		t.Run(name, func(t *testing.T) {
			defer src.Close()
			for _, c := range []struct {
				off, n int64
				short  bool
			}{
				{0, -1, false},
				{0, 0, false},
				{0, 1, false},
				{5, 10, false},
				{70_001, 20_000, false},
				{size - 1, 1, false},
				{size - 1, -1, false},
				{size, 0, false},
				{size, -1, false},
				{0, size, false},
				{0, size + 1, true},
				{size - 1, 2, true},
				{size, 1, true},
				{size + 1, 0, true},
				{size + 1, -1, true},
				{1 << 62, 1 << 62, true},
				{5, 1<<63 - 1, true},
			} {
				r, err := src.OpenRange(t.Context(), "model/a", c.off, c.n)
				if err != nil {
					t.Errorf("[%d,+%d]: %v", c.off, c.n, err)
					continue
				}
				got, err := io.ReadAll(r)
				r.Close()
				end := size
				if c.n >= 0 && c.n <= size-c.off {
					end = c.off + c.n
				}
				want := content[min(c.off, size):max(end, min(c.off, size))]
				if string(got) != want {
					t.Errorf("[%d,+%d]: got %d bytes, want %d", c.off, c.n, len(got), len(want))
				}
				if wantErr := errors.Is(err, io.ErrUnexpectedEOF); wantErr != c.short || !c.short && err != nil {
					t.Errorf("[%d,+%d]: got %v, want short %t", c.off, c.n, err, c.short)
				}
			}
			_, err := src.OpenRange(t.Context(), "model/a", -1, 1)
			checkError(t, err, carton.ErrFormat, "can't begin at -1")
			r, err := src.OpenRange(t.Context(), carton.ManifestName, 2, 5)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != "rton." {
				t.Errorf("MANIFEST: got %q, %v", got, err)
			}
		})
	}
}

// A compressed member that is shorter than it says ends a range early.
func TestRangeOfALie(t *testing.T) {
	for _, method := range []uint16{8, 93} {
		z := good()
		z.files[0].compress(t, method).both(func(h *rawHeader) { h.size = 1000 })
		b := z.bytes()
		src, err := carton.NewReader(strings.NewReader(string(b)), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range []int64{0, 5, 100} {
			r, err := src.OpenRange(t.Context(), "model/a", off, 50)
			if err == nil {
				_, err = io.ReadAll(r)
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("method %d, from %d: got %v, want %v", method, off, err, io.ErrUnexpectedEOF)
			}
		}
	}
}
