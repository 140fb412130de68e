package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: ten thousand small files are a few layers and a small image
// manifest, and come back as they were.

const (
	mostLayers        = 80
	mostManifestBytes = 128 << 10
)

// pythonModel has the shape of a carton for the Python runner: a package with
// ten thousand files, bundled wheels, and a hub's cache of blobs and symlinks.
func pythonModel() *model {
	m := newModel(map[string]string{
		"model/main.py":             "def load(): pass\n",
		"model/.carton/carton.lock": "orig_deps_hash = \"\"\n\n[[lockfile]]\nlocked_deps = []\n",
		"model/.env":                "A=1\n",
		"model/key=value.json":      "{}",
		"model/日本語/名前.txt":          "named in Japanese",
		"model/with space/" + strings.Repeat("long", 50) + ".py": "x = 1\n",
		"tensor_data/index.toml":                                 "tensor = []\n",
		"misc/README.md":                                         "# A model\n",
		"LICENSE":                                                "Apache-2.0\n",
	})
	for i := range 3 {
		wheel := random(fmt.Sprint("wheel", i), 200<<10)
		m.files[fmt.Sprintf("model/.carton/bundled_wheels/%s/dep%d-1.0-py3-none-any.whl", hexSum(wheel), i)] = wheel
	}
	for i := range 10_000 {
		// Sizes from 0 to some KiB; every hundredth is an empty __init__.py.
		name := fmt.Sprintf("model/package/part%02d/module%d.py", i%100, i)
		content := fmt.Sprintf("# module %d\n", i) + strings.Repeat("pass\n", i%700)
		if i < 100 {
			name, content = fmt.Sprintf("model/package/part%02d/__init__.py", i), ""
		}
		m.files[name] = content
	}
	const cache = "model/models--org--m/"
	for name, content := range map[string]string{
		"config.json":       `{"layers": 2}`,
		"tokenizer.json":    random("tokenizer", 300<<10),
		"model.safetensors": random("weights", 3<<20),
	} {
		blob := hexSum(content)
		m.files[cache+"blobs/"+blob] = content
		m.symlinks[cache+"snapshots/abc123/"+name] = "../../blobs/" + blob
	}
	m.symlinks["model/current.json"] = "models--org--m/snapshots/abc123/config.json" // a link to a link
	return m
}

func TestTenThousandFiles(t *testing.T) {
	u := newUser(t)
	m := pythonModel()
	m.write(t, u.path("many.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/many:1"

	p := u.push(t, "many.carton", ref)
	if p.ModelHash != m.hash() {
		t.Errorf("got model hash %s, want %s", p.ModelHash, m.hash())
	}
	if len(p.Layers) > mostLayers {
		t.Errorf("got %d layers, want at most %d", len(p.Layers), mostLayers)
	}
	if got := len(s.Blob(t, p.Digest)); got >= mostManifestBytes {
		t.Errorf("the image manifest is %d bytes, want less than %d", got, mostManifestBytes)
	}
	covered := map[string]bool{}
	for _, l := range p.Layers {
		for _, path := range l.Paths {
			covered[path] = true
		}
	}
	if got, want := len(covered), len(m.files)+len(m.symlinks)+1; got != want {
		t.Errorf("the layers name %d members, want %d", got, want)
	}

	u.pull(t, ref, "-o", "back.carton")
	back := readZip(t, u.path("back.carton"))
	if back.manifest != m.manifest() {
		t.Error("MANIFEST came back changed")
	}
	same(t, &back.model, m)

	u.must(t, "pull", ref, "--unpack", "tree")
	tree := readTree(t, u.path("tree"))
	if got := tree.files["MANIFEST"]; got != m.manifest() {
		t.Error("MANIFEST was unpacked changed")
	}
	delete(tree.files, "MANIFEST")
	same(t, tree, m)

	// The folder and the pulled file are the same carton, and have the digest.
	for _, source := range []string{"./tree", "back.carton"} {
		again := u.push(t, source, ref)
		if again.Digest != p.Digest || *again.BytesUploaded != 0 {
			t.Errorf("%s: got digest %s and %d bytes uploaded, want %s and none", source, again.Digest, *again.BytesUploaded, p.Digest)
		}
	}
	onlyThese(t, u.tmp)
}

// readTree reads a folder, and checks that nothing in it is executable, or
// closed to others.
func readTree(t testing.TB, dir string) *model {
	t.Helper()
	m := &model{files: map[string]string{}, symlinks: map[string]string{}}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if info.Mode().Perm() != 0o755 {
				t.Errorf("folder %s: got mode %o, want 755", path, info.Mode().Perm())
			}
		case info.Mode()&fs.ModeSymlink != 0:
			m.symlinks[path], err = os.Readlink(name)
		default:
			if info.Mode() != 0o644 {
				t.Errorf("file %s: got mode %v, want 0644", path, info.Mode())
			}
			var content []byte
			content, err = os.ReadFile(name)
			m.files[path] = string(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
