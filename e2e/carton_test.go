package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Cartons are written and read here without the library under test: by Go's own
// archive/zip, and by hand.

const zstdMethod = 93

func init() {
	zip.RegisterDecompressor(zstdMethod, zstd.ZipDecompressor())
	zip.RegisterCompressor(zstdMethod, zstd.ZipCompressor())
}

const info = `spec_version = 1
model_name = "test"
short_description = "A model for tests"
license = "Apache-2.0"
repository = "https://example.com/org/m"

[runner]
runner_name = "python"
required_framework_version = "=3.11"
runner_compat_version = 1

[runner.opts]
entrypoint_package = "main"
entrypoint_fn = "load"
`

// model is a carton's members in memory; a symlink's content is its target.
type model struct {
	files    map[string]string
	symlinks map[string]string
	lie      func(manifest string) string // nil, or what MANIFEST says instead
}

// emptyIndex is the tensor_data/index.toml of a carton without tensors, which the
// format's reference loader wants all the same.
const emptyIndex = "tensor = []\n"

func newModel(files map[string]string) *model {
	m := &model{files: map[string]string{"carton.toml": info, "tensor_data/index.toml": emptyIndex}, symlinks: map[string]string{}}
	maps.Copy(m.files, files)
	return m
}

// content returns a member's content, through symlinks.
func (m *model) content(name string) string {
	for {
		target, ok := m.symlinks[name]
		if !ok {
			return m.files[name]
		}
		name = path.Join(path.Dir(name), target)
	}
}

// manifest returns MANIFEST as the reference writer orders it.
func (m *model) manifest() string {
	var b strings.Builder
	names := slices.AppendSeq(slices.Collect(maps.Keys(m.files)), maps.Keys(m.symlinks))
	slices.Sort(names)
	for _, name := range names {
		b.WriteString(name + "=" + hexSum(m.content(name)) + "\n")
	}
	if m.lie != nil {
		return m.lie(b.String())
	}
	return b.String()
}

func (m *model) hash() string { return hexSum(m.manifest()) }

// write writes the carton as a zip, as other writers do: members in no
// particular order, compressed, with data descriptors.
func (m *model) write(t testing.TB, name string) {
	t.Helper()
	m.writeWith(t, name, nil)
}

// writeWith is write with files that MANIFEST does not list.
func (m *model) writeWith(t testing.TB, name string, unlisted map[string]string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	add := func(name, content string, method uint16, mode fs.FileMode) {
		h := &zip.FileHeader{Name: name, Method: method}
		h.SetMode(mode)
		member, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(member, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	methods := []uint16{zstdMethod, zip.Store, zip.Deflate}
	names := slices.Sorted(maps.Keys(m.files))
	slices.Reverse(names)
	for i, name := range names {
		add(name, m.files[name], methods[i%len(methods)], 0o644)
	}
	for name, target := range m.symlinks {
		add(name, target, zip.Store, fs.ModeSymlink|0o777)
	}
	add("MANIFEST", m.manifest(), zip.Store, 0o644)
	for name, content := range unlisted {
		add(name, content, zip.Deflate, 0o644)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// zipped is a carton's zip as archive/zip sees it.
type zipped struct {
	manifest string
	links    string
	model
}

func readZip(t testing.TB, name string) zipped {
	t.Helper()
	r, err := zip.OpenReader(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer r.Close()
	z := zipped{model: model{files: map[string]string{}, symlinks: map[string]string{}}}
	for _, f := range r.File {
		content := readMember(t, f)
		switch {
		case f.Name == "MANIFEST":
			z.manifest = content
		case f.Name == "LINKS":
			z.links = content
		case f.Mode()&fs.ModeSymlink != 0:
			z.symlinks[f.Name] = content
		default:
			z.files[f.Name] = content
		}
	}
	return z
}

func readMember(t testing.TB, f *zip.File) string {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	return string(content)
}

// same checks that two cartons have the same members, byte for byte.
func same(t testing.TB, got, want *model) {
	t.Helper()
	compare(t, "member", got.files, want.files)
	compare(t, "symlink", got.symlinks, want.symlinks)
}

func compare(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for name, content := range want {
		have, ok := got[name]
		switch {
		case !ok:
			t.Errorf("%s %s is missing", what, name)
		case have != content:
			t.Errorf("%s %s: got %d bytes with sha256 %s, want %d with %s",
				what, name, len(have), hexSum(have), len(content), hexSum(content))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s %s: is there, want none", what, name)
		}
	}
}

func hexSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func fileSum(t testing.TB, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// random returns n bytes that don't compress, the same for one seed.
func random(seed string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", seed, i))
		b.Write(sum[:])
	}
	return b.String()[:n]
}
