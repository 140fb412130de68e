package carton_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/carton/sourcetest"
)

// forms are the zip and folder forms of a carton with symlinks, empty members and
// LINKS, each as a function that opens it.
func forms(t *testing.T) map[string]func() carton.Source {
	must := func(src carton.Source, err error) carton.Source {
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	all := map[string]func() carton.Source{}
	for name, method := range map[string]uint16{"stored": 0, "deflated": 8, "zstd": 93} {
		z := linked("model/l", "a", "model/chain", "l")
		for i := range z.files {
			if z.files[i].entry.name == "model/a" {
				z.files[i].compress(t, method)
			}
		}
		b := z.bytes()
		all["zip, "+name] = func() carton.Source { return must(carton.NewReader(bytes.NewReader(b), int64(len(b)))) }
		all["zip read lazily, "+name] = func() carton.Source { return must(carton.NewLazyReader(bytes.NewReader(b), int64(len(b)))) }
	}
	src := cartontest.New(map[string][]byte{"model/a": noise(1, 70_000), "model/b/c": nil, "misc/d": []byte("d")}, map[string]string{"model/b/l": "../a"})
	dir := filepath.Join(t.TempDir(), "c")
	if err := carton.Extract(t.Context(), dir, src, carton.ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "c.carton")
	if err := carton.Assemble(t.Context(), file, src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	all["file"] = func() carton.Source { return must(carton.Open(file)) }
	all["folder"] = func() carton.Source { return must(carton.OpenDir(dir)) }
	all["files in memory"] = func() carton.Source { return must(carton.OpenFS(folderOf("model/a", "weights", "misc/b", ""))) }
	all["thin file"] = func() carton.Source {
		z := zipOf("model/a", "weights", "model/b", "here")
		z.files = z.files[1:]
		z.add(carton.LinksName, "version = 1\n[urls]\n"+hashOf("weights")+" = [\"https://example.com/a\"]\n")
		b := z.bytes()
		return must(carton.NewReader(bytes.NewReader(b), int64(len(b))))
	}
	all["in memory, for tests"] = func() carton.Source {
		return cartontest.New(map[string][]byte{"model/a": []byte("weights"), "model/b": nil}, map[string]string{"model/l": "a"})
	}
	return all
}

func TestSourcesKeepTheirPromises(t *testing.T) {
	for name, open := range forms(t) {
		t.Run(name, func(t *testing.T) {
			sourcetest.TestSource(t, open, sourcetest.Options{})
			sourcetest.TestSource(t, func() carton.Source { return wrapped{open()} }, sourcetest.Options{})
		})
	}
}

// Content that is not what MANIFEST lists has no end.
func TestSourcesOfBrokenContent(t *testing.T) {
	all := forms(t)
	for name, open := range map[string]func() (carton.Source, string){
		"zip, stored": func() (carton.Source, string) {
			z := good()
			z.files[0].packed[0]++
			b := z.bytes()
			src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			return src, "model/a"
		},
		"files in memory": func() (carton.Source, string) {
			files := folderOf("model/a", "weights")
			src, err := carton.OpenFS(files)
			if err != nil {
				t.Fatal(err)
			}
			files["model/a"].Data = []byte("another")
			return src, "model/a"
		},
	} {
		t.Run(name, func(t *testing.T) { sourcetest.TestSource(t, all[name], sourcetest.Options{Broken: open}) })
	}
}
