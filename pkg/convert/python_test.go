package convert

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// docs/mapping.md is enough to write another program that makes the same image
// manifests: testdata/mapping1.py is one.
func TestAnotherImplementationMakesTheSame(t *testing.T) {
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
	for name, src := range map[string]carton.Source{
		"copies of one model":    cartontest.New(copied, nil),
		"every kind of member":   cartontest.New(files, symlinks),
		"bundles of small files": pythonCarton(2000),
		"categories by role":     rolesCarton(rolesTable),
		"categories of others":   rolesCarton("categories = [1]\n"),
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ToOCI(t.Context(), src, Options{})
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(python, filepath.Join("testdata", "mapping1.py"), zipFile(t, src)).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != a.Digest.String() {
				t.Errorf("python: got %s, %v, want %s", got, err, a.Digest)
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
