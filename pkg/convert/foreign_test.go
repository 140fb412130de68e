package convert

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
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

// modctlModel is what modctl pushes of a folder: raw weights, tar of the rest,
// the older filepath key alone, a config with diff_ids.
func modctlModel() foreign {
	f := cnaiModel(
		rawFile("model-00001-of-00002.safetensors", "weights 1"),
		rawFile("model-00002-of-00002.safetensors", "weights 2"),
		rawFile("sub/copy.safetensors", "weights 1"),
		tarLayer(".tar", nil),
		tarLayer(".tar+zstd", nil),
	)
	f.config = `{"descriptor":{"createdAt":"2025-07-01T12:00:00Z","name":"qwen","title":"Qwen \"mini\"",
		"description":"Small.","licenses":["Apache-2.0"],"sourceURL":"https://example.com/s","unknown":[1]},
		"modelfs":{"type":"layers","diff_ids":["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]},"config":{"format":"safetensors"}}`
	f.layers[3].data = foreignTar([]string{"./config.json", "tokenizer.json", "latest.json"},
		map[string]string{"./config.json": "{}", "tokenizer.json": "[]", "latest.json": "-> tokenizer.json"})
	f.layers[4].data = zstdOf(foreignTar([]string{"z.py", "a.py"}, map[string]string{"z.py": "z", "a.py": "a"}))
	f.layers[0].annotations[ocispec.AnnotationTitle] = "not a path"
	return f
}

func TestAPlainModelIsRefusedWithTheWay(t *testing.T) {
	_, err := modctlModel().open(t, OpenOptions{})
	if !errors.Is(err, layout.ErrFormat) || !strings.Contains(err.Error(), "no carton") {
		t.Errorf("got %v, want that it holds no carton", err)
	}
	if hints := hint.Of(err); len(hints) != 1 || !strings.Contains(hints[0], "--runner") || !strings.Contains(hints[0], "--framework-version") {
		t.Errorf("got the hints %q", hints)
	}
}

func TestAPlainModelIsWrapped(t *testing.T) {
	src, err := modctlModel().open(t, OpenOptions{Wrap: &Wrap{RunnerName: "python", FrameworkVersion: "=3.11"}})
	if err != nil {
		t.Fatal(err)
	}
	if !src.Regenerated() {
		t.Error("does not say that MANIFEST is not the author's")
	}
	want := map[string]string{
		"carton.toml": `spec_version = 1
model_name = "Qwen \"mini\""
short_description = "Small."
license = "Apache-2.0"
repository = "https://example.com/s"

[runner]
runner_name = "python"
required_framework_version = "=3.11"
runner_compat_version = 1
`,
		"model/a.py":                             "a",
		"model/config.json":                      "{}",
		"model/latest.json":                      "[]",
		"model/model-00001-of-00002.safetensors": "weights 1",
		"model/model-00002-of-00002.safetensors": "weights 2",
		"model/sub/copy.safetensors":             "weights 1",
		"model/tokenizer.json":                   "[]",
		"model/z.py":                             "z",
	}
	got := map[string]string{}
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		got[m.Path] = content(t, src, m.Path)
		if m.Size != int64(len(got[m.Path])) {
			t.Errorf("%s: got the size %d, want %d", m.Path, m.Size, len(got[m.Path]))
		}
		if m.Path == "model/latest.json" && m.Target != "tokenizer.json" {
			t.Errorf("the symlink's target: got %q", m.Target)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Wrapped twice it is the same carton; as a carton it is pushed and comes back.
	again, err := modctlModel().open(t, OpenOptions{Wrap: &Wrap{RunnerName: "python", FrameworkVersion: "=3.11"}})
	if err != nil {
		t.Fatal(err)
	}
	if src.Manifest().ModelHash() != again.Manifest().ModelHash() {
		t.Error("two wraps differ")
	}
	s, desc, _ := pushed(t, src, Options{})
	back := opened(t, s, desc, OpenOptions{})
	if back.Manifest().ModelHash() != src.Manifest().ModelHash() || back.Regenerated() {
		t.Error("the wrapped carton does not come back")
	}
	config, err := src.Config(t.Context())
	if err != nil || config.Descriptor.Name != "qwen" || len(config.ModelFS.DiffIDs) != 1 {
		t.Errorf("the config: got %+v, %v", config, err)
	}
}

func TestWrappingKeepsWhatLiesInModel(t *testing.T) {
	for name, c := range map[string]struct {
		paths []string
		want  string
	}{
		"all of it":  {[]string{"model/a", "model/b/c"}, "carton.toml model/a model/b/c"},
		"part of it": {[]string{"model/a", "b"}, "carton.toml model/b model/model/a"},
		"folders of a carton": {
			[]string{"misc/a", "tensor_data/b"}, "carton.toml model/misc/a model/tensor_data/b",
		},
	} {
		var layers []foreignLayer
		for _, p := range c.paths {
			layers = append(layers, rawFile(p, p))
		}
		src, err := cnaiModel(layers...).open(t, OpenOptions{Wrap: &Wrap{RunnerName: "r", FrameworkVersion: "*"}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, e := range src.Manifest().Entries() {
			got = append(got, e.Path)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}

func TestWhatWrappingNeeds(t *testing.T) {
	for text, w := range map[string]*Wrap{
		"required_framework_version": {RunnerName: "python", FrameworkVersion: ">=1.0 <2.0"},
		"runner_name":                {FrameworkVersion: "*"},
	} {
		_, err := cnaiModel(rawFile("a", "a")).open(t, OpenOptions{Wrap: w})
		if !errors.Is(err, carton.ErrFormat) || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: got %v, want what is wrong with %s", w, err, text)
		}
	}
	compat := uint64(7)
	src, err := cnaiModel(rawFile("a", "a")).open(t, OpenOptions{Wrap: &Wrap{RunnerName: "r", FrameworkVersion: "*", CompatVersion: &compat}})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := carton.ReadInfo(t.Context(), src); err != nil || *info.Runner.CompatVersion != 7 {
		t.Errorf("got %+v, %v", info, err)
	}
	// A config that is not as specified makes the model no worse; one that is not
	// what its digest says does.
	f := cnaiModel(rawFile("a", "a"))
	f.config = `{"descriptor":{"name":["a list"]}}`
	opts := OpenOptions{Wrap: &Wrap{RunnerName: "r", FrameworkVersion: "*"}}
	if _, err := f.open(t, opts); err != nil {
		t.Errorf("a broken config: %v", err)
	}
	s, desc := f.put(t)
	for dgst, b := range s.blobs {
		if strings.HasPrefix(string(b), `{"descriptor"`) {
			s.blobs[dgst] = []byte(strings.ToUpper(string(b)))
		}
	}
	if _, err := Open(t.Context(), s, desc, opts); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("another config: got %v, want ErrDigest", err)
	}
}

func TestTomlStrings(t *testing.T) {
	for s, want := range map[string]string{
		"":                 "\"\"",
		`a"b\c`:            `"a\"b\\c"`,
		"\n\t\x00\x7f\x1b": `"\u000A\u0009\u0000\u007F\u001B"`,
		"é\u2028😀":         "\"é\u2028😀\"",
		"\xff":             "\"\ufffd\"",
	} {
		if got := tomlString(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

// A carton whose MANIFEST somebody left out is read, and its members are hashed.
func TestManifestIsRegenerated(t *testing.T) {
	src, err := cnaiModel(
		rawFile("carton.toml", fullInfo),
		tarLayer(".tar", foreignTar([]string{"model/a.py", "model/l.py", "misc/x"},
			map[string]string{"model/a.py": "a", "model/l.py": "-> a.py", "misc/x": "x"})),
		rawFile("model/w.bin", "w"),
	).open(t, OpenOptions{Wrap: &Wrap{RunnerName: "ignored"}})
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
	if want := "carton.toml misc/x model/a.py model/l.py model/w.bin"; strings.Join(paths, " ") != want {
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
