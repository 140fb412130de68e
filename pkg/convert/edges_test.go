package convert

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// A layer whose list says that it is MANIFEST's must hold it.
func TestWhatShouldBeTheTarOfManifest(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		kind error
		text string
	}{
		"another file": {oneEntry(tar.Header{Name: "other", Typeflag: tar.TypeReg}, "x"), layout.ErrFormat, "MANIFEST: is not in the tar layer"},
		"a symlink":    {oneEntry(tar.Header{Name: "MANIFEST", Typeflag: tar.TypeSymlink, Linkname: "x"}, ""), layout.ErrFormat, "is not in the tar layer"},
		"a folder":     {oneEntry(tar.Header{Name: "MANIFEST/", Typeflag: tar.TypeDir}, ""), layout.ErrFormat, "is not in the tar layer"},
		"twice": {
			foreignTar([]string{"MANIFEST", "./MANIFEST"}, map[string]string{"MANIFEST": "a", "./MANIFEST": "b"}),
			carton.ErrInsecurePath, "twice",
		},
		"no tar": {[]byte("no tar"), layout.ErrFormat, ""},
	} {
		s, desc := changed(t, Options{MediaTypes: FamilyDraft}, func(s *shelf, m *ocispec.Manifest) {
			d := s.keep("", c.data)
			m.Layers[0].Digest, m.Layers[0].Size = d.Digest, d.Size
		})
		err := readAll(t, s, desc, OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), c.text) || !errors.Is(err, c.kind) {
			t.Errorf("%s: got %v, want %v %s", name, err, c.kind, c.text)
		}
	}
}

// lying is a store that answers ranges with one blob and whole reads with
// another.
type lying struct {
	*shelf
	ranges map[digest.Digest][]byte
}

func (l *lying) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	if b, ok := l.ranges[desc.Digest]; ok && n >= 0 {
		return io.NopCloser(bytes.NewReader(b[off : off+n])), nil
	}
	return l.shelf.OpenRange(ctx, desc, off, n)
}

// What a scan of a large tar was told is held against the verified bytes.
func TestAListThatWasALie(t *testing.T) {
	large := strings.Repeat("\x00", scanWhole)
	files := func(name string) []byte {
		return foreignTar([]string{name, "z"}, map[string]string{name: "x", "z": large})
	}
	s, desc := cnaiModel(rawFile("a", "a"), tarLayer(".tar", files("honest"))).put(t)
	tarDigest := digest.FromBytes(files("honest"))
	opts := OpenOptions{Wrap: &carton.Runner{Name: "r", RequiredFrameworkVersion: "*"}}
	if _, err := Open(t.Context(), &lying{s, nil}, desc, opts); err != nil {
		t.Fatal(err)
	}
	liar := &lying{s, map[digest.Digest][]byte{tarDigest: files("liarXX")}}
	if _, err := Open(t.Context(), liar, desc, opts); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("got %v, want ErrDigest", err)
	}
}

func TestAConfigThatCannotBeRead(t *testing.T) {
	s, desc, a := pushed(t, kinds(), Options{})
	src := opened(t, s, desc, OpenOptions{})
	if c, err := src.Config(t.Context()); err != nil || c.Config.Format != "pytorch" || len(c.ModelFS.DiffIDs) != len(a.Layers) {
		t.Errorf("got %+v, %v", c, err)
	}
	delete(s.blobs, a.Config.Digest)
	if _, err := src.Config(t.Context()); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestWrapIsForPlainModelsAlone(t *testing.T) {
	s, desc, _ := pushed(t, kinds(), Options{})
	src := opened(t, s, desc, OpenOptions{Wrap: &carton.Runner{Name: "other", RequiredFrameworkVersion: "*"}})
	if info, err := carton.ReadInfo(t.Context(), src); err != nil || info.Runner.Name != "python" || src.Regenerated() {
		t.Errorf("a carton was wrapped: %+v, %v", info, err)
	}
}

func TestOffsetsPastALayer(t *testing.T) {
	for _, opts := range []Options{{}, {BundleBelow: 100, Compress: CompressGzip}} {
		_, _, a := pushed(t, kinds(), opts)
		for _, l := range append(a.Layers, a.Config) {
			r, err := l.Open(t.Context(), l.Size+1)
			if err == nil {
				_, err = io.ReadAll(r)
				r.Close()
			}
			if err == nil {
				t.Errorf("%s: opened past its end", l.Name)
			}
		}
	}
}

func TestAMemberThatGrewSinceItWasMeasured(t *testing.T) {
	for _, c := range []Compression{CompressNone, CompressZstd} {
		for _, size := range []int64{3, 20} {
			src := cartontest.New(map[string][]byte{"model/a.py": []byte("ten bytes!")}, nil, cartontest.WithSize("model/a.py", size))
			_, err := artifactOf(t.Context(), src, Options{BundleBelow: 100, Compress: c})
			if !errors.Is(err, layout.ErrDigest) || !strings.Contains(err.Error(), "model/a.py") {
				t.Errorf("%s: a size of %d: got %v, want ErrDigest of model/a.py", c, size, err)
			}
		}
	}
}
