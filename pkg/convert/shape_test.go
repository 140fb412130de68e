package convert

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// pythonCarton is shaped like a carton of the Python runner: thousands of small
// files of site-packages (compiled files beside their sources, dist-info,
// headers, time zones, test data), dotfiles, empty files, a hub's cache with
// symlinks, two weights.
func pythonCarton(n int) *cartontest.Source {
	rnd := rand.New(rand.NewPCG(1, 2))
	data := func(most int) []byte {
		b := make([]byte, 1+rnd.IntN(most))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	files := map[string][]byte{
		"model/main.py":               data(5000),
		"model/.carton/carton.lock":   data(700),
		"model/model-00001.bin":       data(90000),
		"model/hub/models--a/blobs/w": data(90000),
	}
	symlinks := map[string]string{}
	for i := 0; len(files)+len(symlinks) < n; i++ {
		dir := fmt.Sprintf("model/.carton/site-packages/package_%d", i/40)
		switch i % 40 {
		case 0:
			files[dir+"/__init__.py"] = nil
			files[dir+"/py.typed"] = nil
			files[dir+"/.dotfile"] = data(50)
			for _, name := range []string{"METADATA", "RECORD", "WHEEL", "INSTALLER", "REQUESTED", "entry_points.txt", "top_level.txt", "LICENSE"} {
				files[dir+"-1.0.dist-info/"+name] = data(3000)
			}
		case 1:
			files[dir+"/zoneinfo/Europe/City_"+fmt.Sprint(i)] = data(2000)
			files[dir+"/tests/data.sav"] = data(3000)
			files[dir+"/lib.so.1"] = data(3000)
			symlinks[dir+"/lib.so"] = "lib.so.1"
		case 2:
			blob := fmt.Sprintf("%064x", i)
			files["model/hub/models--a/blobs/"+blob] = data(4000)
			symlinks[fmt.Sprintf("model/hub/models--a/snapshots/r/file_%d.json", i)] = "../../blobs/" + blob
		case 3:
			files[dir+"/native.pyx"] = data(4000)
			files[dir+"/native.pxd"] = data(400)
			files[dir+"/include/native.h"] = data(4000)
		default:
			files[fmt.Sprintf("%s/module_%d.py", dir, i)] = data(6000)
			files[fmt.Sprintf("%s/__pycache__/module_%d.cpython-312.pyc", dir, i)] = data(6000)
		}
	}
	symlinks["model/hub/models--a/snapshots/r/model.bin"] = "../../blobs/w"
	return cartontest.New(files, symlinks)
}

func TestManySmallFilesMakeFewLayers(t *testing.T) {
	testenv.Heavy(t)
	src := pythonCarton(10_000)
	for _, opts := range []Options{{}, {Compress: CompressZstd}, {MediaTypes: FamilyDraft}} {
		a, err := artifactOf(t.Context(), src, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(a.Layers); got > 80 {
			t.Errorf("%+v: got %d layers, want at most 80", opts, got)
		}
		if got := len(a.Manifest); got >= 128<<10 {
			t.Errorf("%+v: got an image manifest of %d bytes, want less than %d", opts, got, 128<<10)
		}
		t.Logf("%d members, %d layers, %d bytes", len(src.Manifest().Entries()), len(a.Layers), len(a.Manifest))
	}
}
