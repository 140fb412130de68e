package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

func TestCache(t *testing.T) {
	c := cache(filepath.Join(t.TempDir(), "not", "there", "yet"))
	var got []string
	if c.get("key", &got) {
		t.Error("an empty cache knows something")
	}
	c.put("key", []string{"a", "<b>"})
	if !c.get("key", &got) || strings.Join(got, " ") != "a <b>" {
		t.Errorf("got %q", got)
	}
	if c.get("other", &got) {
		t.Error("another key is known")
	}
	if cache("").get("key", &got) {
		t.Error("no cache knows something")
	}
	cache("").put("key", got)
	info, err := os.Stat(c.file("key"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v, want 0600", info.Mode(), err)
	}
	entries, _ := os.ReadDir(filepath.Dir(c.file("key")))
	if len(entries) != 1 {
		t.Errorf("%d files are left, want 1", len(entries))
	}
}

func TestADamagedCacheIsIgnored(t *testing.T) {
	c := cache(t.TempDir())
	c.put("key", "value")
	c.put("other", "other value")
	good, err := os.ReadFile(c.file("key"))
	if err != nil {
		t.Fatal(err)
	}
	other, _ := os.ReadFile(c.file("other"))
	for name, b := range map[string][]byte{
		"cut":           good[:len(good)-1],
		"empty":         {},
		"changed":       []byte(strings.Replace(string(good), "value", "valve", 1)),
		"another's":     other,
		"without a sum": []byte(`"value"`),
		"large":         append(good, make([]byte, maxCacheBytes)...),
	} {
		if err := os.WriteFile(c.file("key"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		var got string
		if c.get("key", &got) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestBundlesAreRemembered(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []Compression{CompressNone, CompressZstd, CompressGzip} {
		opts := Options{BundleBelow: 100, Compress: c, CacheDir: dir}
		want, err := ToOCI(t.Context(), kinds(), opts)
		if err != nil {
			t.Fatal(err)
		}
		src := kinds()
		got, err := ToOCI(t.Context(), src, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want.Digest {
			t.Errorf("%s: the cache changes the digest", c)
		}
		if opens := strings.Join(src.Opened(), " "); opens != "carton.toml" {
			t.Errorf("%s: read %s, want carton.toml alone", c, opens)
		}
	}
}

// A bundle that differs in anything is not taken for another.
func TestBundlesAreToldApart(t *testing.T) {
	dir := t.TempDir()
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
			a, err := ToOCI(t.Context(), src, Options{BundleBelow: 100, Compress: c, CacheDir: dir})
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
