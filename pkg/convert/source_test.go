package convert

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// What went in comes out: MANIFEST to the byte, members, symlinks, content.
func TestRoundTrip(t *testing.T) {
	want := kinds()
	wantMembers, err := want.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range modes() {
		t.Run(name, func(t *testing.T) {
			s, desc, a := pushed(t, kinds(), opts)
			got := opened(t, s, desc, OpenOptions{})
			if !bytes.Equal(got.Manifest().Bytes(), want.Manifest().Bytes()) {
				t.Error("MANIFEST differs")
			}
			if got.Regenerated() {
				t.Error("says that MANIFEST was regenerated")
			}
			if got.Descriptor().Digest != a.Digest || !bytes.Equal(got.raw, a.Manifest) || len(got.imageManifest.Layers) != len(a.Layers) {
				t.Error("the image manifest differs")
			}
			members, err := got.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wantMembers, members, cmpopts.IgnoreFields(carton.Member{}, "Place", "Bundle", "Ranged")); diff != "" {
				t.Error(diff)
			}
			for _, m := range append(members, carton.Member{Path: carton.ManifestName}) {
				if content(t, got, m.Path) != content(t, want, m.Path) {
					t.Errorf("%s: content differs", m.Path)
				}
			}
			if _, err := carton.ReadInfo(t.Context(), got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPlacesOfMembers(t *testing.T) {
	s, desc, _ := pushed(t, kinds(), Options{})
	members, err := opened(t, s, desc, OpenOptions{}).Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bundles := map[int]bool{}
	for _, m := range members {
		want := carton.PlaceBlob
		if m.Size == 0 {
			want = carton.PlaceBundled
		}
		if m.Place != want {
			t.Errorf("%s: got %s, want %s", m.Path, m.Place, want)
		}
		if inBundle := m.Bundle != 0; inBundle != (m.Size == 0 && m.Target == "") {
			t.Errorf("%s: got the bundle %d", m.Path, m.Bundle)
		}
		bundles[m.Bundle] = true
	}
	if len(bundles) != 3 { // none, that of weights, that of code
		t.Errorf("got %d bundles, want 2", len(bundles)-1)
	}
}

func TestOpeningTakesFewSmallRequests(t *testing.T) {
	for name, c := range map[string]struct {
		most       int64 // bytes
		open, info int   // requests
	}{
		"cnai":       {4000, 2, 0}, // MANIFEST and carton.toml at once
		"cnai-draft": {4096, 1, 1},
	} {
		s, desc, _ := pushed(t, kinds(), modes()[name])
		src := opened(t, s, desc, OpenOptions{})
		if len(s.requests) != c.open || s.sent > c.most {
			t.Errorf("%s: opening took %d requests and %d bytes: %v", name, len(s.requests), s.sent, s.requests)
		}
		s.reset()
		if _, err := carton.ReadInfo(t.Context(), src); err != nil {
			t.Fatal(err)
		}
		if len(s.requests) != c.info || s.sent > c.most {
			t.Errorf("%s: carton.toml took %d requests and %d bytes: %v", name, len(s.requests), s.sent, s.requests)
		}
		s.reset()
		for range 2 {
			if _, err := src.Members(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if bundles := map[string]int{"cnai": 1, "cnai-draft": 2}[name]; len(s.requests) != bundles || s.sent > 7000 { // of symlinks
			t.Errorf("%s: listing took %d requests and %d bytes: %v", name, len(s.requests), s.sent, s.requests)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, mode := range []string{"cnai", "cnai layers=tar compress=none bundle-below=100", "cnai layers=tar compress=zstd bundle-below=100"} {
		s, desc, _ := pushed(t, kinds(), modes()[mode])
		src := opened(t, s, desc, OpenOptions{})
		for _, path := range []string{"MANIFEST", "carton.toml", "model/weights-1.bin", "misc/image.png", "model/__init__.py", "model/chain.json", "model/snapshots/1/w.bin"} {
			all := content(t, src, path)
			size := int64(len(all))
			for _, r := range [][2]int64{{0, -1}, {0, size}, {0, 0}, {size / 2, 2}, {size / 3, -1}, {size, -1}, {size, 0}, {size - 1, 5}, {size + 1, -1}, {size + 1, 1}, {0, size + 1}} {
				if r[0] < 0 {
					continue
				}
				want, short := rangeOf(all, r[0], r[1])
				rc, err := src.OpenRange(t.Context(), path, r[0], r[1])
				if err != nil {
					t.Fatalf("%s %s %v: %v", mode, path, r, err)
				}
				got, err := io.ReadAll(iotest.OneByteReader(rc))
				if string(got) != want || short != errors.Is(err, io.ErrUnexpectedEOF) || (!short && err != nil) {
					t.Errorf("%s %s %v: got %d bytes, %v, want %d, short %v", mode, path, r, len(got), err, len(want), short)
				}
				rc.Close()
			}
		}
		if _, err := src.OpenRange(t.Context(), "model/config.json", -1, 1); err == nil {
			t.Errorf("%s: a negative offset is taken", mode)
		}
	}
}

func rangeOf(all string, off, n int64) (string, bool) {
	size := int64(len(all))
	switch {
	case off > size:
		return "", true
	case n < 0:
		return all[off:], false
	case off+n > size:
		return all[off:], true
	}
	return all[off : off+n], false
}

func TestRangesTakeTheirBytesAlone(t *testing.T) {
	src := cartontest.New(nil, nil, cartontest.WithContent("model/w.bin", cartontest.Zeros(1<<20)))
	for _, form := range []Form{FormRaw, FormTar} {
		s, desc, _ := pushed(t, src, Options{Layers: form})
		got := opened(t, s, desc, OpenOptions{})
		s.reset()
		r, err := got.OpenRange(t.Context(), "model/w.bin", 1000, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if len(s.requests) != 1 || s.sent != 10 {
			t.Errorf("%s: took %d requests and %d bytes, want 1 and 10", form, len(s.requests), s.sent)
		}
	}
}

func TestNoSuchMember(t *testing.T) {
	s, desc, _ := pushed(t, kinds(), Options{})
	src := opened(t, s, desc, OpenOptions{})
	for _, path := range []string{"model", "model/", "LINKS", "", "model/none", ".bundles/code-1.tar"} {
		if _, err := src.Open(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %v, want not exist", path, err)
		}
		if _, err := src.OpenRange(t.Context(), path, 0, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q, a range: got %v, want not exist", path, err)
		}
	}
}

// A registry that sends other bytes is found out, wherever they are.
func TestOtherBytesAreFoundOut(t *testing.T) {
	for name, opts := range map[string]Options{
		"raw": {}, "tar": {Layers: FormTar}, "bundled": {BundleBelow: 10_000}, "zstd": {BundleBelow: 10_000, Compress: CompressZstd},
	} {
		for at := range 7 {
			s, desc, a := pushed(t, kinds(), opts)
			for dgst, b := range s.blobs {
				if dgst != desc.Digest && len(b) > 0 {
					b[len(b)*at/7] ^= 1
				}
			}
			if _, err := Open(t.Context(), s, desc, OpenOptions{}); !errors.Is(err, layout.ErrDigest) {
				t.Fatalf("%s: got %v, want ErrDigest of MANIFEST", name, err)
			}
			// With MANIFEST as it was, the others are found out.
			manifest := s.blobs[a.Layers[0].Digest]
			manifest[len(manifest)*at/7] ^= 1
			src, err := Open(t.Context(), s, desc, OpenOptions{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, e := range src.Manifest().Entries() {
				r, err := src.Open(t.Context(), e.Path)
				if err == nil {
					_, err = io.Copy(io.Discard, r)
					r.Close()
				}
				// In a bundle every other member may be whole. In a layer of its own none
				// is; the empty ones have no bytes that could be wrong.
				alone := name == "raw" && !strings.Contains(e.Path, "__init__") && !strings.Contains(e.Path, "hidden") && !strings.Contains(e.Path, "latest")
				if err == nil && alone {
					t.Errorf("%s: %s: other bytes are believed", name, e.Path)
				}
				if err == nil {
					if content(t, src, e.Path) != content(t, kinds(), e.Path) {
						t.Errorf("%s: %s: wrong content is believed", name, e.Path)
					}
				}
			}
			src.Close()
		}
	}
}
