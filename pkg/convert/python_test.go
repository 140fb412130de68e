package convert

import (
	"archive/zip"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// hubNames are of every rule, and of none.
const hubNames = `.gitattributes .gitignore LICENCE COPYING README.md sample.flac libz.so.1 Dockerfile a.jar train.parquet eval.jsonl
	training_args.bin model ner/model flax_model.msgpack model.onnx_data variables/variables.data-00000-of-00001 rust_model.ot
	merges merges.txt tokenizer tokenizer.model.v3 vocab spiece.model model.ckpt.index chat_template.jinja Modelfile a.npz m.pkl
	consolidated.00.pth zoneinfo/Europe/Berlin M.CKPT`

// hubCarton has files of such names, and a hub's cache with a large blob and a
// small one.
func hubCarton() carton.Source {
	files := map[string][]byte{
		"carton.toml": []byte(fullInfo), "model/blobs/8c1f": make([]byte, filekind.LargeBytes), "model/blobs/22aa": []byte("{}"),
	}
	for _, name := range strings.Fields(hubNames) {
		files["model/"+name] = []byte("bytes of " + name)
	}
	return cartontest.New(files, map[string]string{"model/snapshots/large": "../blobs/8c1f", "model/snapshots/small": "../blobs/22aa"})
}

// docs/mapping.md is enough to write another program that makes the same image
// manifests: testdata/mapping1.py is one.
func TestAnotherImplementationMakesTheSame(t *testing.T) {
	testenv.Heavy(t)
	python := testenv.Program(t, "python3")
	if err := exec.Command(python, "-c", "import tomllib").Run(); err != nil {
		testenv.NotChecked(t, "python3 is older than 3.11")
	}
	files, symlinks := kindsOfMembers()
	files["model/1.safetensors"] = safetensorsOf(700, 0, "BF16", "I64")
	files["model/"+strings.Repeat("long/", 12)+strings.Repeat("x", 80)+".py"] = []byte("a prefix")
	files["model/"+strings.Repeat("long/", 12)+strings.Repeat("y", 80)+".py"] = nil
	copied := map[string][]byte{
		"model/m-1.safetensors": safetensorsOf(7, 0, "F32"), "model/m.safetensors.index.json": []byte(`{"weight_map":{"t0":"m-1.safetensors"}}`),
		"model/consolidated.safetensors": safetensorsOf(8, 0, "F32"), "model/vae/d.safetensors": safetensorsOf(9, 0, "F32"),
		"model/vae/d.ema.fp16.safetensors": safetensorsOf(9, 0, "F16"), "model/vae/e.fp16.safetensors": safetensorsOf(9, 0, "F16"),
	}
	ascii := maps.Clone(files)
	delete(ascii, "model/\u00fcml\u00e4ut.txt") // needs a PAX header in a tar
	for name, src := range map[string]carton.Source{
		"members of ASCII names": cartontest.New(ascii, symlinks),
		"names of hubs":          hubCarton(),
		"copies of one model":    cartontest.New(copied, nil),
		"every kind of member":   cartontest.New(files, symlinks),
		"bundles of small files": pythonCarton(2000),
		"categories by role":     rolesCarton(rolesTable),
		"categories of others":   rolesCarton("categories = [1]\n"),
		"a folder models":        cartontest.New(map[string][]byte{"model/a.bin": []byte("a"), "models/b": []byte("b")}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			file := zipFile(t, src)
			for _, c := range []struct {
				want *layout.Artifact
				args []string
			}{{formsOf(t, src, Options{}).Artifact, nil}, {formsOf(t, src, Options{Image: true}).Image, []string{"image"}}} {
				if name == "every kind of member" && c.args != nil {
					continue
				}
				args := append([]string{filepath.Join("testdata", "mapping1.py"), file}, c.args...)
				out, err := exec.Command(python, args...).CombinedOutput()
				if got := strings.TrimSpace(string(out)); err != nil || got != c.want.Digest.String() {
					t.Errorf("python %v: got %s, %v, want %s", c.args, got, err, c.want.Digest)
				}
			}
		})
	}
}

// zipFile writes a carton as a zip, and returns its name.
func zipFile(t *testing.T, src carton.Source) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "m.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(members, carton.Member{Path: carton.ManifestName}) {
		h := &zip.FileHeader{Name: m.Path, Method: zip.Deflate}
		h.SetMode(0o644)
		data := content(t, src, m.Path)
		if m.Target != "" {
			h.Method, data = zip.Store, m.Target
			h.SetMode(0o777 | os.ModeSymlink)
		}
		entry, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
