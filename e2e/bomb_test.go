package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// bombSize is what members and layers inflate to, in bytes each: more than they
// may cost, and little enough to be read in a moment.
const bombSize = 192 << 20

// bombs are inputs that are small and want to become large.
var bombs = map[string]struct {
	prepare func(t *testing.T, u *user) []string // returns the command
	code    int
}{
	"eight zstd members with windows of 128 MiB": {func(t *testing.T, u *user) []string {
		bombZip(t, u.path("m.carton"), 8, zstdMethod)
		return []string{"pull", "./m.carton", "-o", "out.carton"}
	}, 0},
	"eight deflated members": {func(t *testing.T, u *user) []string {
		bombZip(t, u.path("m.carton"), 8, zip.Deflate)
		return []string{"verify", "./m.carton"}
	}, 0},
	"eight zstd layers with windows of 128 MiB": {func(t *testing.T, u *user) []string {
		return []string{"pull", bombLayout(t, u, "zstd"), "-o", "out.carton"}
	}, 0},
	"eight gzip layers": {func(t *testing.T, u *user) []string {
		return []string{"pull", bombLayout(t, u, "gzip"), "-o", "out.carton"}
	}, 0},
	"LINKS of as many keys as it may have": {func(t *testing.T, u *user) []string {
		var links strings.Builder
		links.WriteString("version = 1\n[urls]\n")
		for i := range 45_000 {
			fmt.Fprintf(&links, "%064x = [\"https://example.com/%070d\"]\n", i, i)
		}
		newModel(nil).writeWith(t, u.path("m.carton"), map[string]string{"LINKS": links.String()})
		return []string{"cat", "./m.carton", "carton.toml"}
	}, 0},
	"LINKS of 80,000 members": {func(t *testing.T, u *user) []string {
		m := newModel(nil)
		var links, listed strings.Builder
		links.WriteString("version = 1\n[urls]\n")
		for i := range 80_000 {
			hash := hexSum(fmt.Sprint(i))
			fmt.Fprintf(&links, "%s = [\"https://e.co/%06d\"]\n", hash, i)
			fmt.Fprintf(&listed, "model/%06d=%s\n", i, hash)
		}
		m.lie = func(manifest string) string { return manifest + listed.String() }
		m.writeWith(t, u.path("m.carton"), map[string]string{"LINKS": links.String()})
		return []string{"cat", "./m.carton", "carton.toml"}
	}, 0},
	"two zips of as many names as there may be": {func(t *testing.T, u *user) []string {
		u.manyNames(t, "a.carton", "x")
		u.manyNames(t, "b.carton", "y")
		return []string{"diff", "./a.carton", "./b.carton", "--format", "json"}
	}, failed},
	"as many names as there may be, pulled": {func(t *testing.T, u *user) []string {
		u.manyNames(t, "m.carton", "x")
		return []string{"pull", "./m.carton", "-o", "out.carton"}
	}, 0},
	"two artifacts of as many names as there may be": {func(t *testing.T, u *user) []string {
		for _, letter := range []string{"x", "y"} {
			u.manyNames(t, letter+".carton", letter)
			if r := u.run(t, "push", "-q", "./"+letter+".carton", "oci:layout-"+letter+":1"); r.code != 0 {
				t.Fatal(r.stderr)
			}
		}
		return []string{"diff", "oci:layout-x:1", "oci:layout-y:1", "--format", "json"}
	}, failed},
	"names of umlauts": {func(t *testing.T, u *user) []string {
		u.manyNames(t, "m.carton", "\u00c4")
		return []string{"ls", "./m.carton", "--format", "json"}
	}, 0},
	"eight safetensors headers of a million tensors":                {headersOf(990_000), 0},
	"eight safetensors headers of as many tensors as they may have": {headersOf(200_000), 0},
	"a carton.toml of 16 MiB": {func(t *testing.T, u *user) []string {
		m := newModel(nil)
		var b strings.Builder
		b.WriteString(info + "[more]\n")
		for i := 0; b.Len() < 15<<20; i++ {
			fmt.Fprintf(&b, "%x=[]\n", i)
		}
		m.files["carton.toml"] = b.String()
		m.write(t, u.path("m.carton"))
		return []string{"inspect", "./m.carton"}
	}, badContent},
	"an image manifest of 512 MiB": {func(t *testing.T, u *user) []string {
		r := registrytest.New(t, registrytest.Config{})
		r.Break(registrytest.Fault{Path: "/manifests/", Times: -1, Effect: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Content-Length", fmt.Sprint(512<<20))
			_, _ = io.CopyN(w, zeroReader{}, 512<<20)
		}})
		return []string{"pull", r.Host + "/org/m:1", "-o", "out.carton"}
	}, badContent},
	"an error without end": {func(t *testing.T, u *user) []string {
		r := registrytest.New(t, registrytest.Config{})
		r.Break(registrytest.Fault{Path: "/manifests/", Times: -1, Effect: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.CopyN(w, zeroReader{}, 4<<30)
		}})
		return []string{"pull", r.Host + "/org/m:1", "-o", "out.carton"}
	}, failed},
}

func TestBombs(t *testing.T) {
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			args := b.prepare(t, u)
			c := newCanary(t, u)
			r, peak := u.measured(t, args...)
			if r.code != b.code {
				t.Errorf("got exit code %d, want %d\n%.2000s", r.code, b.code, r.stderr)
			}
			if peak > bombMost {
				t.Errorf("got a peak memory of %d MiB, want at most %d", peak>>20, bombMost>>20)
			}
			c.check(t)
			testenv.Checked(t, 1, "peak memory %d MiB", peak>>20)
		})
	}
}

// zeroReader reads as zeros without end.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// bombContent is what member i of a bomb inflates to.
func bombContent(i int) io.Reader {
	return io.MultiReader(strings.NewReader(fmt.Sprint(i)), io.LimitReader(zeroReader{}, bombSize))
}

// wideEncoder makes zstd frames that ask for a window of 128 MiB.
func wideEncoder(t *testing.T, w io.Writer) io.WriteCloser {
	t.Helper()
	e, err := zstd.NewWriter(w, zstd.WithWindowSize(128<<20), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// bombZip writes a carton of n members that inflate.
func bombZip(t *testing.T, name string, n int, method uint16) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	if method == zstdMethod {
		w.RegisterCompressor(zstdMethod, func(w io.Writer) (io.WriteCloser, error) { return wideEncoder(t, w), nil })
	}
	manifest := "carton.toml=" + hexSum(info) + "\n"
	add := func(name string, method uint16, r io.Reader) string {
		h := sha256.New()
		member, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = io.Copy(io.MultiWriter(member, h), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	add("carton.toml", zip.Store, strings.NewReader(info))
	for i := range n {
		path := fmt.Sprintf("model/%d.bin", i)
		manifest += path + "=" + add(path, method, bombContent(i)) + "\n"
	}
	manifest += "tensor_data/index.toml=" + add("tensor_data/index.toml", zip.Store, strings.NewReader(emptyIndex)) + "\n"
	add("MANIFEST", zip.Store, strings.NewReader(manifest))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// manyNames writes a carton of nearly as many members as there may be, with
// names that have nearly as many bytes.
func (u *user) manyNames(t *testing.T, name, letter string) {
	t.Helper()
	f, err := os.Create(u.path(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	add := func(name, content string) {
		member, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(member, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var manifest strings.Builder
	fmt.Fprintf(&manifest, "carton.toml=%s\n", hexSum(info))
	add("carton.toml", info)
	hash, tail := hexSum("1"), strings.Repeat(letter, 68/len(letter))
	for i := range 149_000 {
		path := fmt.Sprintf("model/%06d.%s", i, tail)
		add(path, "1")
		manifest.WriteString(path + "=" + hash + "\n")
	}
	add("tensor_data/index.toml", emptyIndex)
	manifest.WriteString("tensor_data/index.toml=" + hexSum(emptyIndex) + "\n")
	add("MANIFEST", manifest.String())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// bombLayout writes an image layout whose eight layers are compressed tars of one
// large member, as another tool makes them, and returns its reference.
func bombLayout(t *testing.T, u *user, compression string) string {
	t.Helper()
	dir := u.path("out-bomb")
	blobs := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(mediaType string, b []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
		writeFile(t, filepath.Join(blobs, d.Digest.Encoded()), string(b))
		return d
	}
	weights := "application/vnd.cnai.model.weight.v1.tar+" + compression
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: "application/vnd.cnai.model.manifest.v1+json",
		Config:       put("application/vnd.cnai.model.config.v1+json", []byte("{}")),
		Layers:       []ocispec.Descriptor{put("application/vnd.cnai.model.weight.config.v1.tar", tarOf(t, "carton.toml", strings.NewReader(info), int64(len(info)), ""))},
	}
	for i := range 8 {
		n := int64(len(fmt.Sprint(i))) + bombSize
		m.Layers = append(m.Layers, put(weights, tarOf(t, fmt.Sprintf("model/%d.bin", i), bombContent(i), n, compression)))
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	d := put(ocispec.MediaTypeImageManifest, raw)
	d.Annotations = map[string]string{ocispec.AnnotationRefName: "1"}
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: []ocispec.Descriptor{d}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "index.json"), string(index))
	writeFile(t, filepath.Join(dir, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`)
	return "oci:" + dir + ":1"
}

// tarOf returns a tar of one file, compressed.
func tarOf(t *testing.T, name string, r io.Reader, size int64, compression string) []byte {
	t.Helper()
	var b bytes.Buffer
	var out io.WriteCloser = nopCloser{&b}
	switch compression {
	case "zstd":
		out = wideEncoder(t, &b)
	case "gzip":
		out = gzip.NewWriter(&b)
	}
	w := tar.NewWriter(out)
	err := w.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o644})
	if err == nil {
		_, err = io.Copy(w, r)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// headersOf makes a carton of eight safetensors files with n tensors each, all
// empty.
func headersOf(n int) func(t *testing.T, u *user) []string {
	return func(t *testing.T, u *user) []string {
		t.Helper()
		m := newModel(nil)
		header := hugeHeader(n)
		for i := range 8 {
			// Each is different, so that each is read.
			m.files[fmt.Sprintf("model/%d.safetensors", i)] = strings.Replace(header, "layer.000000", fmt.Sprintf("layer.%06d", n+i), 1)
		}
		m.write(t, u.path("m.carton"))
		return []string{"push", "./m.carton", "oci:out:1"}
	}
}

// hugeHeader is a safetensors file of n tensors without elements.
func hugeHeader(n int) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"layer.%06d":{"dtype":"F32","shape":[0,1,2],"data_offsets":[0,0]}`, i)
	}
	b.WriteString("}")
	size := b.Len()
	return string([]byte{byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24), 0, 0, 0, 0}) + b.String()
}
