package convert

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

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
	if !errors.Is(err, ErrNoCarton) || !strings.Contains(err.Error(), "no carton") {
		t.Errorf("got %v, want that it holds no carton", err)
	}
	if hints := hint.Of(err); len(hints) != 1 || !strings.Contains(hints[0].String(), "PullOptions.Wrap NAME") || !strings.Contains(hints[0].String(), "FrameworkVersion REQ") {
		t.Errorf("got the hints %q", hints)
	}
}

func TestAPlainModelIsWrapped(t *testing.T) {
	src, err := modctlModel().open(t, OpenOptions{Wrap: &carton.Runner{Name: "python", RequiredFrameworkVersion: "=3.11"}})
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
		"tensor_data/index.toml":                 "tensor = []\n",
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
	again, err := modctlModel().open(t, OpenOptions{Wrap: &carton.Runner{Name: "python", RequiredFrameworkVersion: "=3.11"}})
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
		"all of it":  {[]string{"model/a", "model/b/c"}, "carton.toml model/a model/b/c tensor_data/index.toml"},
		"part of it": {[]string{"model/a", "b"}, "carton.toml model/b model/model/a tensor_data/index.toml"},
		"folders of a carton": {
			[]string{"misc/a", "tensor_data/b"}, "carton.toml model/misc/a model/tensor_data/b tensor_data/index.toml",
		},
	} {
		var layers []foreignLayer
		for _, p := range c.paths {
			layers = append(layers, rawFile(p, p))
		}
		src, err := cnaiModel(layers...).open(t, OpenOptions{Wrap: &carton.Runner{Name: "r", RequiredFrameworkVersion: "*"}})
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
	for text, w := range map[string]*carton.Runner{
		"required_framework_version": {Name: "python", RequiredFrameworkVersion: ">=1.0 <2.0"},
		"runner_name":                {RequiredFrameworkVersion: "*"},
	} {
		_, err := cnaiModel(rawFile("a", "a")).open(t, OpenOptions{Wrap: w})
		if !errors.Is(err, carton.ErrFormat) || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: got %v, want what is wrong with %s", w, err, text)
		}
	}
	compat := uint64(7)
	src, err := cnaiModel(rawFile("a", "a")).open(t, OpenOptions{Wrap: &carton.Runner{Name: "r", RequiredFrameworkVersion: "*", CompatVersion: &compat}})
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
	opts := OpenOptions{Wrap: &carton.Runner{Name: "r", RequiredFrameworkVersion: "*"}}
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

// TestWhatIsMadeLoads: a carton that a pull makes of an artifact without one is
// what the format's loader reads, whose rules carton.Verify knows.
func TestWhatIsMadeLoads(t *testing.T) {
	for name, f := range map[string]foreign{
		"a plain model": modctlModel(),
		"a carton without MANIFEST": cnaiModel(
			rawFile("carton.toml", cartontest.Info), rawFile("model/w.bin", "w"), rawFile("misc/x", "x")),
	} {
		t.Run(name, func(t *testing.T) {
			src, err := f.open(t, OpenOptions{Wrap: &carton.Runner{Name: "noop", RequiredFrameworkVersion: "*"}})
			if err != nil {
				t.Fatal(err)
			}
			report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
			if err != nil || !report.OK() {
				t.Errorf("got %v, %v", report, err)
			}
		})
	}
	// What has tensors, and no index, stays as it is: nobody can say what they are.
	src, err := cnaiModel(rawFile("carton.toml", cartontest.Info), rawFile("tensor_data/t.bin", "t")).open(t, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := src.Manifest().Lookup(carton.IndexName); ok {
		t.Error("an index was made for tensors that it does not list")
	}
}
