package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

func TestCategoryByPath(t *testing.T) {
	for path, want := range map[string]category{
		"MANIFEST":                     categoryConfig,
		"carton.toml":                  categoryConfig,
		"tensor_data/index.toml":       categoryDataset,
		"tensor_data/tensor_0.bin":     categoryDataset,
		"misc/model.safetensors":       categoryDoc,
		"misc/config.json":             categoryDoc,
		"elsewhere.json":               categoryDoc,
		"MANIFEST2":                    categoryDoc,
		"models/config.json":           categoryDoc,
		"model/config.json":            categoryConfig,
		"model/tokenizer.MODEL":        categoryConfig,
		"model/deep/down/vocab.txt":    categoryConfig,
		"model/README":                 categoryDoc,
		"model/Readme.html":            categoryDoc,
		"model/LICENSE-APACHE":         categoryDoc,
		"model/NOTICE.json":            categoryDoc, // the first rule that fits
		"model/license_plates.onnx":    categoryWeight,
		"model/a.MD":                   categoryDoc,
		"model/main.py":                categoryCode,
		"model/x.PYC":                  categoryCode,
		"model/lib/py.typed":           categoryCode,
		"model/x-1.0.dist-info/RECORD": categoryConfig,
		"model/model.safetensors":      categoryWeight,
		"model/pytorch_model.BIN":      categoryWeight,
		"model/model.pt2":              categoryWeight,
		"model/rust_model.ot":          categoryWeight,
		"model/Europe/Berlin":          categoryConfig,
		"model/.gitattributes":         categoryDoc,
		"model/.py":                    categoryCode,
		"model/model.p\u212al":         categoryConfig, // the Kelvin sign is no k
	} {
		if got := roles(nil).of(path, 1); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestUnknownNamesAreWeightsByTheirSize(t *testing.T) {
	for _, c := range []struct {
		path string
		size int64
		want category
	}{
		{"model/model.safetensors", 1, categoryWeight},
		{"model/a.bin", 0, categoryWeight},
		{"tensor_data/a.bin", 1 << 30, categoryDataset},
		{"misc/model.pt", 1 << 30, categoryDoc},
		{"model/main.py", 1 << 30, categoryCode},
		{"model/blobs/8c1f", filekind.LargeBytes - 1, categoryConfig},
		{"model/blobs/8c1f", filekind.LargeBytes, categoryWeight},
		{"blobs/8c1f", filekind.LargeBytes, categoryDoc},
	} {
		if got := roles(nil).of(c.path, c.size); got != c.want {
			t.Errorf("%s of %d bytes: got %s, want %s", c.path, c.size, got, c.want)
		}
	}
}

// A symlink of unknown name is what it ends at, by its size too, so that a cache
// of a hub has one kind of layer for both.
func TestASymlinkHasTheSizeOfItsEnd(t *testing.T) {
	src := cartontest.New(map[string][]byte{
		carton.InfoName: []byte(cartontest.Info), "model/blobs/8c1f": make([]byte, filekind.LargeBytes), "model/blobs/22aa": []byte("small"),
	}, map[string]string{"model/snapshots/large": "../blobs/8c1f", "model/snapshots/small": "../blobs/22aa"})
	a, err := artifactOf(t.Context(), src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range a.Layers {
		got[l.Name] = strings.TrimPrefix(l.MediaType, "application/vnd.cnai.model.")
	}
	want := map[string]string{
		"MANIFEST": "weight.config.v1.raw", "carton.toml": "weight.config.v1.raw",
		"model/blobs/8c1f": "weight.v1.raw", "model/snapshots/large": "weight.v1.raw",
		"model/blobs/22aa": "weight.config.v1.raw", "model/snapshots/small": "weight.config.v1.raw",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What carton.toml says of a member counts, and not its name.
func TestRolesGoBeforeNames(t *testing.T) {
	info, err := carton.ParseInfo([]byte(cartontest.Info + `[categories]
"model/config.py" = "weight.config"
"model/best" = "weight"
"model/state.json" = "weight"
"model/cache.bin" = "dataset"
"model/words.txt" = "poetry"
"model/number.txt" = 1
"misc/notes.md" = "weight"
"carton.toml" = "code"
MANIFEST = "doc"
`))
	if err != nil {
		t.Fatal(err)
	}
	r := rolesOf(info)
	for path, want := range map[string]category{
		"model/config.py":  categoryConfig,
		"model/best":       categoryWeight, // however small
		"model/state.json": categoryWeight,
		"model/cache.bin":  categoryDataset,
		"model/words.txt":  categoryConfig,
		"model/number.txt": categoryConfig,
		"model/other":      categoryConfig,
		"model/other.bin":  categoryWeight,
		"misc/notes.md":    categoryDoc,
		"carton.toml":      categoryConfig,
		"MANIFEST":         categoryConfig,
	} {
		if got := r.of(path, 1); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if r.of("model/cache.bin", 1<<40) == categoryWeight || r.of("model/config.py", 1<<40) == categoryWeight {
		t.Error("what is called something else is no weight, however large")
	}
}

// rolesCarton has a table that calls a script a configuration and a document a
// checkpoint, among so many small files that only weights stand alone.
func rolesCarton(table string) carton.Source {
	files := map[string][]byte{
		carton.InfoName: []byte(cartontest.Info + table), "model/config.py": []byte("depth = 3\n"),
		"model/checkpoints/1.json": []byte("{}"), "model/checkpoints/2": []byte("two"),
	}
	for i := range 70 {
		files[fmt.Sprintf("model/lib/%d.py", i)] = fmt.Appendf(nil, "%d", i)
	}
	return cartontest.New(files, map[string]string{"model/latest.json": "checkpoints/1.json"})
}

const rolesTable = `[categories]
"model/checkpoints/1.json" = "weight"
"model/checkpoints/2" = "weight"
"model/config.py" = "weight.config"
"model/gone.py" = "weight"
`

func TestLayersByRole(t *testing.T) {
	for table, want := range map[string]map[string]string{
		"": {"model/checkpoints/1.json": "weight.config.v1.tar", "model/checkpoints/2": "weight.config.v1.tar", "model/config.py": "code.v1.tar", "model/latest.json": "weight.config.v1.tar"},
		rolesTable: {
			"model/checkpoints/1.json": "weight.v1.raw", "model/checkpoints/2": "weight.v1.raw", "model/config.py": "weight.config.v1.tar",
			"model/latest.json": "weight.config.v1.raw",
		},
	} {
		forms, err := Build(t.Context(), rolesCarton(table), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range forms.Artifact.Layers {
			for _, path := range forms.Paths[i] {
				if want, ok := want[path]; ok && l.MediaType != "application/vnd.cnai.model."+want {
					t.Errorf("%s: got %s, want %s", path, l.MediaType, want)
				}
			}
		}
	}
	// Invalid in another field, it is read all the same.
	src := cartontest.New(map[string][]byte{
		carton.InfoName: []byte("homepage = 3\n" + cartontest.Info + rolesTable), "model/config.py": []byte("x"),
	}, nil)
	a, err := artifactOf(t.Context(), src, Options{AllowInvalid: true})
	if err != nil || a.Layers[2].MediaType != "application/vnd.cnai.model.weight.config.v1.raw" {
		t.Errorf("got %+v, %v", a, err)
	}
}
