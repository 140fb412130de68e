package carton_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// FuzzReader: no bytes make the reader crash, use much memory or return what
// MANIFEST does not promise. What it accepts, archive/zip sees the same in.
func FuzzReader(f *testing.F) {
	f.Add(good().bytes())
	f.Add(linked("model/l", "a").bytes())
	for _, name := range slices.Sorted(maps.Keys(oddZips)) {
		z := good()
		oddZips[name](f, z)
		f.Add(z.bytes())
	}
	for _, c := range brokenZips {
		if b := c.build(f); len(b) < 1<<16 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
		lazy, lazyErr := carton.NewLazyReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			oneLine(t, err)
			return
		}
		if lazyErr != nil {
			t.Fatalf("accepted, but not lazily: %v", lazyErr)
		}
		members, err := src.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := otherReader(t, b)
		for _, m := range members {
			content, err := carton.ReadMember(t.Context(), src, m.Path, 1<<20)
			again, lazyErr := carton.ReadMember(t.Context(), lazy, m.Path, 1<<20)
			if (err == nil) != (lazyErr == nil) || !bytes.Equal(content, again) {
				t.Fatalf("%q: got %v, lazily %v", m.Path, err, lazyErr)
			}
			if err != nil {
				oneLine(t, err)
				continue
			}
			if int64(len(content)) != m.Size || hashOf(string(content)) != m.Hash {
				t.Errorf("%q: got %d bytes, want %d of the right hash", m.Path, len(content), m.Size)
			}
			if want, ok := other[m.Path]; ok && m.Target == "" && !bytes.Equal(content, want) {
				t.Errorf("%q: got %q, archive/zip reads %q", m.Path, content, want)
			}
		}
		if got := other[carton.ManifestName]; got != nil && !bytes.Equal(got, src.Manifest().Bytes()) {
			t.Errorf("MANIFEST: got %q, archive/zip reads %q", src.Manifest().Bytes(), got)
		}
		if _, err := carton.Check(t.Context(), src); err != nil && !errors.Is(err, carton.ErrLink) {
			t.Errorf("Check: %v", err)
		}
	})
}

// otherReader returns the stored and deflated members as archive/zip sees them.
// It must see each name once.
func otherReader(t *testing.T, b []byte) map[string][]byte {
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("archive/zip does not accept it: %v", err)
	}
	names, contents := map[string]bool{}, map[string][]byte{}
	for _, f := range r.File {
		if names[f.Name] {
			t.Fatalf("%q occurs twice", f.Name)
		}
		names[f.Name] = true
		m, err := f.Open()
		if err != nil {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(m, 1<<20))
		if err == nil {
			contents[f.Name] = content
		}
	}
	return contents
}
