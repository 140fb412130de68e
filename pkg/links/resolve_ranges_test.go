package links_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

const mib = 1 << 20

// sameContent holds an assembled carton against what thin made it of.
func sameContent(t *testing.T, name string, manifest *carton.Manifest, data []byte) {
	t.Helper()
	got, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if !bytes.Equal(got.Manifest().Bytes(), manifest.Bytes()) {
		t.Error("MANIFEST has other bytes")
	}
	for path, want := range map[string][]byte{"model/a": data, "model/link": data, "model/b": []byte("here")} {
		if b, err := readAll(got, path); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: got %d bytes, %v, want %d", path, len(b), err, len(want))
		}
	}
}

// strictPlaces are places that are told whether only ranges will do.
type strictPlaces struct {
	*places
	noRanges map[string]bool // by URL: it gives the whole only
}

func (p strictPlaces) Open(ctx context.Context, link links.Link, off, n int64) (io.ReadCloser, error) {
	if p.noRanges[link.URL] && ranges.IsOnly(ctx) {
		return nil, fmt.Errorf("get %s: %w", link.URL, ranges.ErrNone)
	}
	return p.places.Open(ctx, link, off, n)
}

// A linked member is read by ranges, from whichever of its URLs gives them; what
// one has wrong, another has right.
func TestLinkedMembersAreReadByRanges(t *testing.T) {
	data := numbers(6*mib + 5)
	wrong := append([]byte(nil), data...)
	wrong[3*mib] ^= 1
	for name, c := range map[string]struct {
		first, second func(off, n int64) (io.Reader, error)
		noRanges      map[string]bool
		whole         bool // it is read from its beginning to its end, too
		fails         error
	}{
		"both are right":          {first: gives(data), second: gives(data)},
		"one breaks":              {first: breaks(data, 2*mib+7), second: gives(data)},
		"one is not there":        {second: gives(data)},
		"one is wrong":            {first: gives(wrong), second: gives(data), whole: true},
		"one has no ranges":       {first: gives(data), second: gives(data), noRanges: map[string]bool{"one": true}},
		"none has ranges":         {first: gives(data), second: gives(data), noRanges: map[string]bool{"one": true, "two": true}, whole: true},
		"none, and one is wrong":  {first: gives(wrong), second: gives(data), noRanges: map[string]bool{"one": true, "two": true}, whole: true},
		"both are wrong":          {first: gives(wrong), second: gives(wrong), whole: true, fails: carton.ErrChecksum},
		"one is wrong, one short": {first: gives(wrong), second: gives(data[:2*mib]), whole: true, fails: carton.ErrChecksum},
		"none is there":           {fails: carton.ErrLink},
	} {
		t.Run(name, func(t *testing.T) {
			p := &places{serve: map[string]func(off, n int64) (io.Reader, error){}, sizes: map[string]int64{"one": int64(len(data))}}
			for u, serve := range map[string]func(off, n int64) (io.Reader, error){"one": c.first, "two": c.second} {
				if serve != nil {
					p.serve[u] = serve
				}
			}
			src := links.Resolve(thin(data, "one", "two"), strictPlaces{p, c.noRanges})
			defer src.Close()
			dir := t.TempDir()
			out := filepath.Join(dir, "m")
			err := carton.Assemble(t.Context(), out, src, carton.AssembleOptions{})
			whole := strings.Contains(strings.Join(p.asked, "\n"), " 0 -1")
			if whole != c.whole {
				t.Errorf("it was read whole: %v; asked %q", whole, p.asked)
			}
			if c.fails != nil {
				if !errors.Is(err, c.fails) || !strings.Contains(err.Error(), "model/a") {
					t.Errorf("got %v, want %v", err, c.fails)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sameContent(t, out, src.Manifest(), data)
		})
	}
}

// breaks serves ranges of b that end with an error at byte n.
func breaks(b []byte, n int64) func(off, n int64) (io.Reader, error) {
	return func(off, count int64) (io.Reader, error) {
		if off+count <= n {
			return gives(b)(off, count)
		}
		return cuts(b, n)(off, count)
	}
}
