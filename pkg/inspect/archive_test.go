package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

const archivePath = "model/m.pt2"

// twoModels is an archive of two models that share a storage. There is no public
// file of this layout with its weights; this one is built from the layout that
// torch documents, with torch's habits (internal/modeltest).
func twoModels(t *testing.T, padding int) []byte {
	t.Helper()
	shared := pattern(2 * 3 * 4)
	float := func(name string, shape, stride []int64, storage int, param bool) modeltest.Weight {
		return modeltest.Weight{Name: name, DType: modeltest.Float, Shape: shape, Stride: stride, Storage: storage, Param: param}
	}
	return modeltest.PT2(t, modeltest.Archive{
		Storages: [][]byte{shared, pattern(8), make([]byte, padding)},
		Models: []modeltest.Model{
			{Name: "one", Weights: []modeltest.Weight{
				float("w", []int64{2, 3}, []int64{3, 1}, 0, true),
				float("tied", []int64{2, 3}, []int64{3, 1}, 0, true),
				{Name: "steps", DType: modeltest.Long, Shape: []int64{}, Stride: []int64{}, Storage: 1},
				{Name: "large", DType: modeltest.Byte, Shape: []int64{int64(padding)}, Stride: []int64{1}, Storage: 2},
			}},
			{Name: "two", Weights: []modeltest.Weight{
				float("w", []int64{2, 3}, []int64{3, 1}, 0, true),
				float("turned", []int64{3, 2}, []int64{1, 3}, 0, true),
			}},
		},
	})
}

func TestTensorsOfAnArchive(t *testing.T) {
	src := cartontest.New(map[string][]byte{archivePath: twoModels(t, 300)}, nil)
	tensors, notes := tensorsOf(t, src, Options{})
	want := `w F32 [2 3] 24 model/m.pt2 one
tied F32 [2 3] 24 model/m.pt2 one
steps I64 [] 8 model/m.pt2 one
large U8 [300] 300 model/m.pt2 one
w F32 [2 3] 24 model/m.pt2 two
turned F32 [3 2] 24 model/m.pt2 two
`
	if diff := cmp.Diff(want, shown(tensors)); diff != "" || len(notes) != 0 {
		t.Errorf("notes %v: %s", notes, diff)
	}
	tensors, _ = tensorsOf(t, src, Options{Model: "two"})
	if len(tensors) != 2 || tensors[0].Model != "two" {
		t.Errorf("of one model: got\n%s", shown(tensors))
	}
	// What is shared counts once: w under two names, in two models, and turned.
	f := describe(t, src, Options{})
	if f.Parameters != 6 || f.Precision != "float32" || f.Format != "pt2" {
		t.Errorf("got %+v", f)
	}
	models := []Model{
		{archivePath, modelfile.Model{Name: "one", Torch: "2.9.1+cpu", Tensors: 4, Parameters: 6}},
		{archivePath, modelfile.Model{Name: "two", Torch: "2.9.1+cpu", Tensors: 2, Parameters: 6}},
	}
	if diff := cmp.Diff(models, f.Models); diff != "" {
		t.Error(diff)
	}
}

func TestElementsOfAnArchive(t *testing.T) {
	b := twoModels(t, 300)
	s := pattern(24)
	turned := slicesOf(s, 0, 12, 4, 16, 8, 20)
	for name, src := range map[string]carton.Source{
		"ranged": cartontest.New(map[string][]byte{archivePath: b}, nil),
		"dear":   cartontest.New(map[string][]byte{archivePath: b}, nil, dear(archivePath)),
	} {
		opts := Options{Through: true}
		// Two models have w, and it is the same.
		if got, verified := elements(t, src, find(t, src, "w", opts)); verified || !bytes.Equal(got, s) {
			t.Errorf("%s: w: verified: %v, got % x", name, verified, got)
		}
		if got, _ := elements(t, src, find(t, src, "turned", opts)); !bytes.Equal(got, turned) {
			t.Errorf("%s: turned: got % x, want % x", name, got, turned)
		}
	}
}

// slicesOf joins four bytes at each of the offsets.
func slicesOf(b []byte, offsets ...int) []byte {
	var out []byte
	for _, o := range offsets {
		out = append(out, b[o:o+4]...)
	}
	return out
}

func TestModelsThatDiffer(t *testing.T) {
	weight := func(storage int) []modeltest.Weight {
		return []modeltest.Weight{{Name: "w", DType: modeltest.Byte, Shape: []int64{4}, Stride: []int64{1}, Storage: storage}}
	}
	b := modeltest.PT2(t, modeltest.Archive{
		Storages: [][]byte{[]byte("aaaa"), []byte("bbbb")},
		Models:   []modeltest.Model{{Name: "a", Weights: weight(0)}, {Name: "b", Weights: weight(1)}},
	})
	src := cartontest.New(map[string][]byte{archivePath: b}, nil)
	_, _, err := Find(t.Context(), src, "w", Options{})
	if !errors.Is(err, ErrAmbiguous) || !strings.Contains(err.Error(), `model/m.pt2 (model "a"), model/m.pt2 (model "b")`) {
		t.Errorf("got %v, want ErrAmbiguous", err)
	}
	if got, _ := elements(t, src, find(t, src, "w", Options{Model: "b"})); string(got) != "bbbb" {
		t.Errorf("got %q", got)
	}
	// Neither is called a parameter: all weights count.
	if f := describe(t, src, Options{}); f.Parameters != 8 {
		t.Errorf("got %+v", f)
	}
}

// What opening an archive costs: its end, and the documents before it that did
// not fit.
func TestArchivesCostFewRanges(t *testing.T) {
	const large = 10 << 20
	a := counting(t, cartontest.New(map[string][]byte{archivePath: twoModels(t, large)}, nil))
	tensor := find(t, a, "large", Options{})
	if len(a.ranges) != 1 || a.read > readahead.TailBytes {
		t.Errorf("opening took %v and %d bytes", a.ranges, a.read)
	}
	a.ranges, a.read = nil, 0
	got, _ := elements(t, a, tensor)
	if len(got) != large || len(a.ranges) != 2 || a.read > large+readahead.Least {
		t.Errorf("a tensor of %d bytes took %v and %d bytes", large, a.ranges, a.read)
	}
	a.ranges, a.read = nil, 0
	elements(t, a, find(t, a, "turned", Options{}))
	if len(a.ranges) != 2 || a.read > readahead.TailBytes+readahead.Least {
		t.Errorf("a small tensor took %v and %d bytes", a.ranges, a.read)
	}
}

// In a member that can only be read forward an archive is left alone, unless it
// is asked for; then it costs two passes.
func TestArchivesThatCanOnlyBeReadForward(t *testing.T) {
	b := twoModels(t, 1<<20)
	want := describe(t, cartontest.New(map[string][]byte{archivePath: b}, nil), Options{})
	for _, o := range []cartontest.Option{dear(archivePath), cartontest.WithBundle(1, archivePath)} {
		a := counting(t, cartontest.New(map[string][]byte{archivePath: b}, nil, o))
		got := describe(t, a, Options{})
		if got.Parameters != -1 || len(got.Notes) != 1 || got.Notes[0].Text != noteSkipped || len(a.ranges) != 0 {
			t.Errorf("not asked for: got %+v after %v", got, a.ranges)
		}
		if diff := cmp.Diff(want, describe(t, a, Options{Through: true}), noErr); diff != "" {
			t.Error(diff)
		}
		if len(a.ranges) > 2 || a.most != 1 {
			t.Errorf("took %v, %d at once", a.ranges, a.most)
		}
	}
}

// The real definition and weights config of a mobilenet, with storages of zeros:
// the blobs are not public.
func TestARealModelsParameters(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(testenv.Foreign(t, "pt2/mobilenet_v3_small/"+name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	weights := read("model_weights_config.json")
	var config struct {
		Config map[string]struct {
			Path  string `json:"path_name"`
			Param bool   `json:"is_param"`
			Meta  struct {
				DType int `json:"dtype"`
				Sizes []struct {
					N int64 `json:"as_int"`
				} `json:"sizes"`
			} `json:"tensor_meta"`
		} `json:"config"`
	}
	if err := json.Unmarshal(weights, &config); err != nil {
		t.Fatal(err)
	}
	var records []modeltest.Record
	sum := int64(0)
	for _, w := range config.Config {
		n := int64(1)
		for _, d := range w.Meta.Sizes {
			n *= d.N
		}
		if w.Param {
			sum += n
		}
		size := map[int]int64{modeltest.Float: 4, modeltest.Long: 8}[w.Meta.DType]
		records = append(records, modeltest.Record{Name: "data/weights/" + w.Path, Data: make([]byte, n*size)})
	}
	records = append(records,
		modeltest.Record{Name: "data/weights/model_weights_config.json", Data: weights},
		modeltest.Record{Name: "data/constants/model_constants_config.json", Data: read("model_constants_config.json")},
		modeltest.Record{Name: "models/model.json", Data: read("model.json")},
		modeltest.Record{Name: "archive_format", Data: []byte("pt2")},
		modeltest.Record{Name: "archive_version", Data: []byte("0")},
	)
	b := modeltest.TorchZip("mobilenet_v3_small", "little", records...)
	a := counting(t, cartontest.New(map[string][]byte{archivePath: b}, nil))
	tensors, notes := tensorsOf(t, a, Options{})
	if len(tensors) != 244 || len(notes) != 0 || len(a.ranges) > 3 {
		t.Errorf("got %d tensors and %v after %v", len(tensors), notes, a.ranges)
	}
	if f := describe(t, a, Options{}); f.Parameters != 2_542_856 || f.Parameters != sum || f.Precision != "float32" {
		t.Errorf("got %d parameters of %s, want 2542856 of float32; the config's sum is %d", f.Parameters, f.Precision, sum)
	}
	dearly := cartontest.New(map[string][]byte{archivePath: b}, nil, dear(archivePath))
	a = counting(t, dearly)
	if f := describe(t, a, Options{Through: true}); f.Parameters != sum || len(a.ranges) > 2 {
		t.Errorf("read forward: got %d after %v", f.Parameters, a.ranges)
	}
}

// A real archive of an early AOTInductor holds code and no weights.
func TestARealArchiveOfCode(t *testing.T) {
	b, err := os.ReadFile(testenv.Foreign(t, "pt2/ep1.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	f := describe(t, cartontest.New(map[string][]byte{archivePath: b}, nil), Options{})
	want := []Model{{archivePath, modelfile.Model{Name: "model", Parameters: -1, Backends: []modelfile.Backend{{Device: "cpu"}}}}}
	if diff := cmp.Diff(want, f.Models); diff != "" || f.Parameters != -1 || f.Format != "pt2" {
		t.Errorf("got %+v: %s", f, diff)
	}
}

func TestArchivesThatAreBroken(t *testing.T) {
	b := twoModels(t, 300)
	for name, content := range map[string][]byte{
		"cut": b[:len(b)-1], "empty": nil, "no zip": []byte("no zip at all"), "another zip": modeltest.PlainZip(t, false, modeltest.Record{Name: "a/b"}),
	} {
		tensors, notes := tensorsOf(t, cartontest.New(map[string][]byte{archivePath: content}, nil), Options{})
		if len(tensors) != 0 || len(notes) != 1 || notes[0].Member != archivePath {
			t.Errorf("%s: got %v, %v, want a note", name, tensors, notes)
		}
	}
	unknown := cartontest.New(map[string][]byte{archivePath: b}, nil, cartontest.WithUnknownSize(archivePath))
	if _, notes := tensorsOf(t, unknown, Options{}); len(notes) != 1 {
		t.Errorf("of unknown size: got %v, want a note", notes)
	}
	broken := errors.New("broken")
	for _, place := range []carton.Place{carton.PlaceStored, carton.PlaceCompressed} {
		src := &failingRange{Source: cartontest.New(map[string][]byte{archivePath: b}, nil), place: place, err: broken}
		if _, err := Describe(t.Context(), src, Options{Through: true}); !errors.Is(err, broken) || !strings.Contains(err.Error(), archivePath) {
			t.Errorf("%s: got %v, want the source's error", place, err)
		}
	}
}

func TestTensorsThatAreNoRawBytes(t *testing.T) {
	b := modeltest.PT2(t, modeltest.Archive{
		Storages: [][]byte{[]byte("\x80\x02.")},
		Models: []modeltest.Model{{Name: "m", Weights: []modeltest.Weight{
			{Name: "p", DType: modeltest.Float, Shape: []int64{4}, Stride: []int64{1}, Pickle: true, Param: true},
		}}},
	})
	src := cartontest.New(map[string][]byte{archivePath: b}, nil)
	if f := describe(t, src, Options{}); f.Parameters != 4 {
		t.Errorf("got %+v", f)
	}
	_, _, err := Open(t.Context(), src, find(t, src, "p", Options{}))
	if !errors.Is(err, ErrElements) || !strings.Contains(err.Error(), "pickled") {
		t.Errorf("got %v, want ErrElements", err)
	}
}

func TestDiffOfArchives(t *testing.T) {
	a := cartontest.New(map[string][]byte{archivePath: twoModels(t, 300)}, nil)
	b := cartontest.New(map[string][]byte{archivePath: twoModels(t, 301)}, nil)
	if got, want := different(t, a, b), fmt.Sprintf("! %s true\n  reshaped large\n", archivePath); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	other := twoModels(t, 300)
	i := bytes.Index(other, pattern(24))
	other[i]++
	b = cartontest.New(map[string][]byte{archivePath: other}, nil)
	if got, want := different(t, a, b), fmt.Sprintf("! %s true\n", archivePath); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
