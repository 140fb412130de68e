package convert

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

func TestWhatIsNoImageManifest(t *testing.T) {
	s := newShelf()
	for name, c := range map[string]struct {
		desc ocispec.Descriptor
		kind error
		hint string
	}{
		"an index": {
			desc: s.keep(ocispec.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"mediaType":"`+ocispec.MediaTypeImageIndex+`","manifests":[]}`)),
			kind: layout.ErrFormat, hint: "digest",
		},
		"an index that comes as an image manifest": {
			desc: s.keep(ocispec.MediaTypeImageManifest, []byte(`{"schemaVersion":2,"manifests":[]} `)),
			kind: layout.ErrFormat, hint: "digest",
		},
		"no JSON":      {desc: s.keep(ocispec.MediaTypeImageManifest, []byte("<html>")), kind: layout.ErrFormat},
		"a large one":  {desc: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 512 << 20}, kind: layout.ErrLimit},
		"not there":    {desc: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 5}, kind: layout.ErrNotFound},
		"another type": {desc: s.keep("text/html", []byte(`{"schemaVersion":2,"config":{},"layers":[]}`)), kind: layout.ErrFormat},
	} {
		err := readAll(t, s, c.desc, OpenOptions{})
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: got %v, want %v", name, err, c.kind)
		}
		if got := fmt.Sprint(hint.Of(err)); !strings.Contains(got, c.hint) {
			t.Errorf("%s: got the hints %q, want one about the %s", name, got, c.hint)
		}
	}
	desc := s.keep(ocispec.MediaTypeImageManifest, []byte("{}"))
	s.blobs[desc.Digest] = []byte("{ }")
	if err := readAll(t, s, desc, OpenOptions{}); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("other bytes: got %v, want ErrDigest", err)
	}
}

// oneEntry is a tar with one entry of any kind.
func oneEntry(h tar.Header, data string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h.Size, h.Mode = int64(len(data)), 0o644
	if err := errors.Join(w.WriteHeader(&h), func() error { _, err := io.WriteString(w, data); return err }(), w.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestForeignArtifactsThatAreRefused(t *testing.T) {
	file := func(name string) []byte { return oneEntry(tar.Header{Name: name, Typeflag: tar.TypeReg}, "x") }
	info := rawFile("carton.toml", cartontest.Info)
	x := cartontest.Bytes("x").Hash()
	toml := "carton.toml=" + cartontest.Bytes(cartontest.Info).Hash() + "\n"
	for name, c := range map[string]struct {
		layers []foreignLayer
		kind   error
	}{
		"a hard link": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeLink, Linkname: "carton.toml"}, ""))},
			layout.ErrFormat,
		},
		"a device": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeBlock}, ""))},
			layout.ErrFormat,
		},
		"a FIFO": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeFifo}, ""))},
			layout.ErrFormat,
		},
		"a tar name that escapes":      {[]foreignLayer{info, tarLayer(".tar", file("../../x"))}, carton.ErrInsecurePath},
		"an absolute tar name":         {[]foreignLayer{info, tarLayer(".tar", file("/x"))}, carton.ErrInsecurePath},
		"a tar name with a backslash":  {[]foreignLayer{info, tarLayer(".tar", file(`a\b`))}, carton.ErrInsecurePath},
		"a folder's name that escapes": {[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "../d/", Typeflag: tar.TypeDir}, ""))}, carton.ErrInsecurePath},
		"a symlink that escapes": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeSymlink, Linkname: "../../etc/passwd"}, ""))},
			carton.ErrFormat,
		},
		"a symlink outside of model": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "carton.toml"}, ""))},
			carton.ErrInsecurePath,
		},
		"a symlink to itself": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "model/a", Typeflag: tar.TypeSymlink, Linkname: "a"}, ""))},
			carton.ErrFormat,
		},
		"data behind the end":  {[]foreignLayer{info, tarLayer(".tar", append(file("model/a"), 1))}, layout.ErrFormat},
		"no end":               {[]foreignLayer{info, tarLayer(".tar", file("model/a")[:1024])}, layout.ErrFormat},
		"two frames":           {[]foreignLayer{info, tarLayer(".tar+zstd", append(zstdOf(file("model/a")), zstdOf(file("model/b"))...))}, layout.ErrFormat},
		"no zstd":              {[]foreignLayer{info, tarLayer(".tar+zstd", file("model/a"))}, layout.ErrFormat},
		"no gzip":              {[]foreignLayer{info, tarLayer(".tar+gzip", file("model/a"))}, layout.ErrFormat},
		"an empty tar layer":   {[]foreignLayer{info, tarLayer(".tar", nil)}, layout.ErrFormat},
		"names that are one":   {[]foreignLayer{info, rawFile("model/A", "x"), rawFile("model/a", "x")}, carton.ErrInsecurePath},
		"a name twice":         {[]foreignLayer{info, rawFile("model/a", "x"), tarLayer(".tar", file("model/a"))}, carton.ErrInsecurePath},
		"a file and a folder":  {[]foreignLayer{info, rawFile("model/a", "x"), rawFile("model/a/b", "x")}, carton.ErrInsecurePath},
		"LINKS":                {[]foreignLayer{info, rawFile("LINKS", "version = 1")}, carton.ErrFormat},
		"a broken carton.toml": {[]foreignLayer{rawFile("carton.toml", "spec_version = 1"), rawFile("model/a", "x")}, carton.ErrFormat},
		"MANIFEST without carton.toml": {
			[]foreignLayer{rawFile("MANIFEST", "model/a="+x+"\n"), rawFile("model/a", "x")}, carton.ErrFormat,
		},
		"MANIFEST that lists carton.toml, which is not there": {
			[]foreignLayer{rawFile("MANIFEST", "model/a="+x+"\n"+toml), rawFile("model/a", "x")}, carton.ErrFormat,
		},
		"a broken MANIFEST": {[]foreignLayer{info, rawFile("MANIFEST", "model/a\n"), rawFile("model/a", "x")}, carton.ErrFormat},
		"an empty MANIFEST": {[]foreignLayer{info, rawFile("MANIFEST", ""), rawFile("model/a", "x")}, carton.ErrFormat},
		"an empty MANIFEST in a tar": {
			[]foreignLayer{info, tarLayer(".tar", oneEntry(tar.Header{Name: "MANIFEST", Typeflag: tar.TypeReg}, ""))}, carton.ErrFormat,
		},
		"MANIFEST in two tars": {
			[]foreignLayer{
				info, tarLayer(".tar", oneEntry(tar.Header{Name: "MANIFEST", Typeflag: tar.TypeReg}, toml)),
				tarLayer(".tar", oneEntry(tar.Header{Name: "MANIFEST", Typeflag: tar.TypeReg}, toml)),
			}, carton.ErrInsecurePath,
		},
		"wrong content in a tar": {
			[]foreignLayer{info, rawFile("MANIFEST", toml+"model/a="+cartontest.Bytes("y").Hash()+"\n"), tarLayer(".tar", file("model/a"))},
			carton.ErrChecksum,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, desc := cnaiModel(c.layers...).put(t)
			if err := readAll(t, s, desc, OpenOptions{}); !errors.Is(err, c.kind) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
			if s.open != 0 {
				t.Errorf("%d bodies are open", s.open)
			}
		})
	}
}
