package convert

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// foreign is an artifact made by hand, as another program would make it.
type foreign struct {
	artifactType string
	configType   string
	config       string
	annotations  map[string]string
	layers       []foreignLayer
}

type foreignLayer struct {
	mediaType   string
	annotations map[string]string
	data        []byte
}

// cnaiModel is a model artifact of the cnai family.
func cnaiModel(layers ...foreignLayer) foreign {
	return foreign{
		artifactType: "application/vnd.cnai.model.manifest.v1+json",
		configType:   "application/vnd.cnai.model.config.v1+json",
		config:       "{}",
		layers:       layers,
	}
}

func (f foreign) put(t testing.TB) (*shelf, ocispec.Descriptor) {
	t.Helper()
	s := newShelf()
	m := ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: f.artifactType,
		Config: s.keep(f.configType, []byte(f.config)), Annotations: f.annotations,
		Layers: []ocispec.Descriptor{},
	}
	m.SchemaVersion = 2
	for _, l := range f.layers {
		d := s.keep(l.mediaType, l.data)
		d.Annotations = l.annotations
		m.Layers = append(m.Layers, d)
	}
	desc := s.keep(ocispec.MediaTypeImageManifest, marshal(m))
	return s, desc
}

func (f foreign) open(t testing.TB, opts OpenOptions) (*Source, error) {
	t.Helper()
	s, desc := f.put(t)
	src, err := Open(t.Context(), s, desc, opts)
	if err == nil {
		t.Cleanup(func() { src.Close() })
	}
	return src, err
}

// rawFile is a raw layer as modctl makes it, with one of the filepath keys.
func rawFile(path, data string) foreignLayer {
	return foreignLayer{
		mediaType:   "application/vnd.cnai.model.weight.v1.raw",
		annotations: map[string]string{filepathCNAI: path},
		data:        []byte(data),
	}
}

// foreignTar is a tar as other programs write it: an owner, a time of today,
// executable bits, "./" in front, no folder entries.
func foreignTar(names []string, content map[string]string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		h := &tar.Header{
			Name: name, Mode: 0o755, Uid: 1000, Gid: 1000, Uname: "user", Gname: "users",
			ModTime: time.Date(2025, 7, 1, 12, 0, 0, 123, time.UTC), Format: tar.FormatPAX, Typeflag: tar.TypeReg,
		}
		data := content[name]
		if target, ok := strings.CutPrefix(data, "-> "); ok {
			h.Typeflag, h.Linkname, data = tar.TypeSymlink, target, ""
		}
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if _, err := io.WriteString(w, data); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func tarLayer(suffix string, data []byte) foreignLayer {
	return foreignLayer{mediaType: "application/vnd.cncf.model.weight.config.v1" + suffix, data: data}
}

func zstdOf(b []byte) []byte {
	e, _ := zstd.NewWriter(nil)
	return e.EncodeAll(b, nil)
}

// A carton whose MANIFEST somebody left out is read, and its members are hashed.
func TestManifestIsRegenerated(t *testing.T) {
	src, err := cnaiModel(
		rawFile("carton.toml", fullInfo),
		tarLayer(".tar", foreignTar([]string{"model/a.py", "model/l.py", "misc/x"},
			map[string]string{"model/a.py": "a", "model/l.py": "-> a.py", "misc/x": "x"})),
		rawFile("model/w.bin", "w"),
	).open(t, OpenOptions{Wrap: &carton.Runner{Name: "ignored"}})
	if err != nil {
		t.Fatal(err)
	}
	if !src.Regenerated() {
		t.Error("does not say so")
	}
	m := src.Manifest()
	var paths []string
	for _, e := range m.Entries() {
		paths = append(paths, e.Path)
		content(t, src, e.Path) // verified
	}
	if want := "carton.toml misc/x model/a.py model/l.py model/w.bin tensor_data/index.toml"; strings.Join(paths, " ") != want {
		t.Errorf("got %v, want %s", paths, want)
	}
	a, _ := m.Lookup("model/a.py")
	l, _ := m.Lookup("model/l.py")
	if a.Hash != l.Hash {
		t.Error("a symlink's hash is not its target's")
	}
	if !strings.HasPrefix(string(m.Bytes()), "carton.toml=") || !strings.HasSuffix(string(m.Bytes()), "\n") {
		t.Errorf("got %q", m.Bytes())
	}
}

// A MANIFEST inside somebody's tar is found, and believed by the layer's digest.
func TestManifestInsideATar(t *testing.T) {
	want := kinds()
	files, symlinks := kindsOfMembers()
	names := append(sortedKeys(files), sortedKeys(symlinks)...)
	all := map[string]string{"MANIFEST": string(want.Manifest().Bytes())}
	for p, b := range files {
		all[p] = string(b)
	}
	for p, target := range symlinks {
		all[p] = "-> " + target
	}
	for _, c := range []struct {
		suffix string
		pack   func([]byte) []byte
	}{{".tar", func(b []byte) []byte { return b }}, {".tar+zstd", zstdOf}} {
		data := c.pack(foreignTar(append([]string{"MANIFEST"}, names...), all))
		f := cnaiModel(tarLayer(c.suffix, data))
		src, err := f.open(t, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if src.Manifest().ModelHash() != want.Manifest().ModelHash() || src.Regenerated() {
			t.Errorf("%s: MANIFEST is not restored", c.suffix)
		}
		members, err := src.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if content(t, src, m.Path) != content(t, want, m.Path) {
				t.Errorf("%s: %s differs", c.suffix, m.Path)
			}
			if m.Target != symlinks[m.Path] {
				t.Errorf("%s: %s: got the target %q, want %q", c.suffix, m.Path, m.Target, symlinks[m.Path])
			}
		}
	}
}

// Of a large tar only the headers are read to learn what is inside.
func TestLargeTarsAreScanned(t *testing.T) {
	all := map[string]string{
		"carton.toml": cartontest.Info, "model/a.py": "a", "model/l.py": "-> z.py", "model/z.py": "z",
		"model/large.bin": strings.Repeat("\x00", scanWhole),
	}
	want := cartontest.New(map[string][]byte{
		"model/a.py": []byte("a"), "model/z.py": []byte("z"), "model/large.bin": []byte(all["model/large.bin"]),
	}, map[string]string{"model/l.py": "z.py"})
	s, desc := cnaiModel(
		rawFile("MANIFEST", string(want.Manifest().Bytes())),
		tarLayer(".tar", foreignTar([]string{"model/z.py", "model/large.bin", "model/a.py", "carton.toml", "model/l.py"}, all)),
	).put(t)
	src := opened(t, s, desc, OpenOptions{})
	s.reset()
	if _, err := src.Members(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.sent > 1<<20 {
		t.Errorf("listing took %d bytes", s.sent)
	}
	for _, e := range want.Manifest().Entries() {
		if content(t, src, e.Path) != content(t, want, e.Path) {
			t.Errorf("%s differs", e.Path)
		}
	}
}

// All families and forms in one artifact, whoever named what.
func TestAnyMixOfTypes(t *testing.T) {
	want := kinds()
	files, symlinks := kindsOfMembers()
	types := []string{
		"application/vnd.cnai.model.weight.v1", "application/vnd.cncf.model.weight.v1.raw", "application/vnd.cncf.model.doc.v1",
		"application/vnd.cnai.model.dataset.v1.raw",
	}
	keys := []string{filepathCNAI, filepathCNCF, ocispec.AnnotationTitle}
	f := cnaiModel()
	f.artifactType = "" // the config decides
	f.configType = "application/vnd.cncf.model.config.v1+json"
	files["MANIFEST"] = want.Manifest().Bytes()
	for i, path := range sortedKeys(files) {
		l := foreignLayer{mediaType: types[i%len(types)], annotations: map[string]string{keys[i%len(keys)]: path}, data: files[path]}
		if i%5 == 4 {
			l = tarLayer(".tar", foreignTar([]string{path}, map[string]string{path: string(files[path])}))
			l.annotations = map[string]string{filepathCNAI: "../ignored", AnnotationMembers: "no list of ours"}
		}
		f.layers = append(f.layers, l)
	}
	links := map[string]string{}
	for p, target := range symlinks {
		links[p] = "-> " + target
	}
	f.layers = append(f.layers, tarLayer(".tar", foreignTar(sortedKeys(links), links)))
	src, err := f.open(t, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range want.Manifest().Entries() {
		if content(t, src, e.Path) != content(t, want, e.Path) {
			t.Errorf("%s differs", e.Path)
		}
	}
}
