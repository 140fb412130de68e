package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// A bundle that differs in anything is not taken for another.
func TestBundlesAreToldApart(t *testing.T) {
	seen := map[string]string{}
	for name, src := range map[string]*cartontest.Source{
		"one":              cartontest.New(map[string][]byte{"model/a.py": []byte("a"), "model/b.py": []byte("b")}, nil),
		"another content":  cartontest.New(map[string][]byte{"model/a.py": []byte("a"), "model/b.py": []byte("c")}, nil),
		"another path":     cartontest.New(map[string][]byte{"model/a.py": []byte("a"), "model/c.py": []byte("b")}, nil),
		"swapped":          cartontest.New(map[string][]byte{"model/a.py": []byte("b"), "model/b.py": []byte("a")}, nil),
		"a symlink":        cartontest.New(map[string][]byte{"model/a.py": []byte("a")}, map[string]string{"model/b.py": "a.py"}),
		"another symlink":  cartontest.New(map[string][]byte{"model/a.py": []byte("a")}, map[string]string{"model/c.py": "a.py"}),
		"a symlink deeper": cartontest.New(map[string][]byte{"model/a.py": []byte("a")}, map[string]string{"model/b/b.py": "../a.py"}),
	} {
		for _, c := range []Compression{CompressNone, CompressZstd, CompressGzip} {
			a, err := artifactOf(t.Context(), src, Options{BundleBelow: 100, Compress: c})
			if err != nil {
				t.Fatal(err)
			}
			newShelf().put(t, a) // every layer has the digest that it says
			id := ""
			for _, l := range a.Layers[2:] {
				id += l.Digest.String()
			}
			if other, ok := seen[id]; ok {
				t.Errorf("%s, %s has the layers of %s", name, c, other)
			}
			seen[id] = name + ", " + string(c)
		}
	}
}

// The library that compresses is part of the mapping: another version of it is a
// decision, not an update.
func TestCompressorIsPinned(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testenv.Root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "\t"+compressor) {
		t.Errorf("go.mod does not require %s", compressor)
	}
}
