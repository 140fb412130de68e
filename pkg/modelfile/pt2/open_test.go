package pt2_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

func open(b []byte) (*pt2.Archive, error) { return pt2.Open(bytes.NewReader(b), int64(len(b))) }

func mustOpen(t *testing.T, b []byte) *pt2.Archive {
	t.Helper()
	a, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// floats returns the little-endian bytes of 0, 1, 2, … as float32.
func floats(n int) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
	}
	return b
}

// sharing is an archive of two models that view one storage of 12 floats: the
// encoder as it lies there, the decoder transposed and as one row.
func sharing() modeltest.Archive {
	return modeltest.Archive{
		Storages:  [][]byte{floats(12), floats(2)},
		Constants: [][]byte{floats(3)},
		Models: []modeltest.Model{
			{
				Name: "encoder",
				Weights: []modeltest.Weight{
					{Name: "fc.weight", DType: modeltest.Float, Shape: []int64{3, 4}, Stride: []int64{4, 1}, Param: true},
					{Name: "running_mean", DType: modeltest.Float, Shape: []int64{2}, Stride: []int64{1}, Storage: 1},
				},
				Inputs:  []modeltest.Value{{Name: "x", DType: modeltest.Float, Shape: []any{"s77", 3}}},
				Outputs: []modeltest.Value{{Name: "linear", DType: modeltest.Float, Shape: []any{"s77", 4}}},
			},
			{
				Name: "decoder", Torch: "2.8.0",
				Weights: []modeltest.Weight{
					{Name: "fc.weight", DType: modeltest.Float, Shape: []int64{4, 3}, Stride: []int64{1, 4}, Param: true},
					{Name: "row", DType: modeltest.Float, Shape: []int64{2}, Stride: []int64{2}, Offset: 5, Param: true},
					{Name: "tied", DType: modeltest.Float, Shape: []int64{3, 4}, Stride: []int64{4, 1}, Param: true},
				},
				Constants: []modeltest.Weight{{Name: "lifted", DType: modeltest.Float, Shape: []int64{3}, Stride: []int64{1}}},
				Inputs:    []modeltest.Value{{Name: "ids", DType: modeltest.Long, Shape: []any{1, "2*s77 + 1"}}},
				Outputs:   []modeltest.Value{{Name: "logits", DType: modeltest.BFloat16, Shape: []any{}}},
			},
		},
		Records: []modeltest.Record{
			{Name: "extra/labels.json", Data: []byte(`["cat"]`)},
			{Name: "data/sample_inputs/encoder_0.pt", Data: []byte("\x80\x02].")},
			{Name: "data/sample_inputs/other_0.pt", Data: []byte("\x80\x02].")},
		},
	}
}

// TestTwoModelsThatShareWeights lists an archive whole, and reads a strided
// tensor out of it.
func TestTwoModelsThatShareWeights(t *testing.T) {
	b := modeltest.PT2(t, sharing())
	a := mustOpen(t, b)
	offset := int64(bytes.Index(b, floats(12)))
	view := func(name string, shape, stride []int64, at int64) pt2.Tensor {
		return pt2.Tensor{
			Name: name, DType: "F32", Shape: shape, Stride: stride, StorageOffset: at,
			File: "data/weights/weight_0", Offset: offset, Param: true,
		}
	}
	sym := func(s string) pt2.Dim { return pt2.Dim{Size: -1, Symbol: s} }
	want := []pt2.Model{
		{
			Name: "decoder", TorchVersion: "2.8.0", Schema: "8.14",
			Weights: []pt2.Tensor{
				view("fc.weight", []int64{4, 3}, []int64{1, 4}, 0),
				view("row", []int64{2}, []int64{2}, 5),
				view("tied", []int64{3, 4}, []int64{4, 1}, 0),
			},
			Constants: []pt2.Tensor{{
				Name: "lifted", DType: "F32", Shape: []int64{3}, Stride: []int64{1}, File: "data/constants/tensor_0",
				Offset: int64(bytes.LastIndex(b, floats(3))),
			}},
			Inputs:  []pt2.Value{{Name: "ids", Kind: "tensor", DType: "I64", Shape: []pt2.Dim{{Size: 1}, sym("2*s77 + 1")}}},
			Outputs: []pt2.Value{{Name: "logits", Kind: "tensor", DType: "BF16", Shape: []pt2.Dim{}}},
		},
		{
			Name: "encoder", TorchVersion: "2.9.1+cpu", Schema: "8.14",
			Weights: []pt2.Tensor{
				view("fc.weight", []int64{3, 4}, []int64{4, 1}, 0),
				{
					Name: "running_mean", DType: "F32", Shape: []int64{2}, Stride: []int64{1}, File: "data/weights/weight_1",
					Offset: a.Models[1].Weights[1].Offset,
				},
			},
			Inputs:  []pt2.Value{{Name: "x", Kind: "tensor", DType: "F32", Shape: []pt2.Dim{sym("s77"), {Size: 3}}}},
			Outputs: []pt2.Value{{Name: "linear", Kind: "tensor", DType: "F32", Shape: []pt2.Dim{sym("s77"), {Size: 4}}}},
		},
	}
	if diff := cmp.Diff(want, a.Models, ignoreInner); diff != "" {
		t.Error(diff)
	}
	rest := &pt2.Archive{
		TorchVersion: "2.8.0", Models: a.Models,
		Findings: []string{
			"data/sample_inputs/other_0.pt belongs to no model",
			"model encoder was exported by torch 2.9.1+cpu, another by 2.8.0",
		},
	}
	if diff := cmp.Diff(rest, a, ignoreInner); diff != "" {
		t.Error(diff)
	}
	got := read(t, b, &decoder(mustOpen(t, b))[0])
	if diff := cmp.Diff([]float32{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, asFloats(got)); diff != "" {
		t.Errorf("the transposed tensor: %s", diff)
	}
	if got := asFloats(read(t, b, &decoder(mustOpen(t, b))[1])); !slices.Equal(got, []float32{5, 7}) {
		t.Errorf("row: got %v", got)
	}
}

// decoder returns the decoder's weights.
func decoder(a *pt2.Archive) []pt2.Tensor { return a.Models[0].Weights }

func read(t *testing.T, b []byte, tensor *pt2.Tensor) []byte {
	t.Helper()
	r, err := tensor.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func asFloats(b []byte) []float32 {
	var f []float32
	for ; len(b) >= 4; b = b[4:] {
		f = append(f, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return f
}

// TestRealDocuments reads the weights config and model definition that torch
// wrote for mobilenet_v3_small, in an archive built around them: its blobs are not
// public. The count of parameters is checked against encoding/json.
func TestRealDocuments(t *testing.T) {
	document := func(name string) []byte {
		b, err := os.ReadFile(testenv.Foreign(t, "pt2/mobilenet_v3_small/"+name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	config := document("model_weights_config.json")
	var parsed struct {
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
	if err := json.Unmarshal(config, &parsed); err != nil {
		t.Fatal(err)
	}
	storages := make([][]byte, len(parsed.Config))
	sum, all := int64(0), int64(0)
	for _, w := range parsed.Config {
		n := int64(1)
		for _, s := range w.Meta.Sizes {
			n *= s.N
		}
		if all += n; w.Param {
			sum += n
		}
		var i int
		if _, err := fmt.Sscanf(w.Path, "weight_%d", &i); err != nil {
			t.Fatal(err)
		}
		size := map[int]int64{modeltest.Float: 4, modeltest.Long: 8}[w.Meta.DType]
		storages[i] = make([]byte, n*size)
	}
	b := modeltest.PT2(t, modeltest.Archive{Storages: storages, Records: []modeltest.Record{
		{Name: "data/weights/model_weights_config.json", Data: config},
		{Name: "data/constants/model_constants_config.json", Data: document("model_constants_config.json")},
		{Name: "models/model.json", Data: document("model.json")},
	}})
	a := mustOpen(t, b)
	m := a.Models[0]
	parameters, elements := int64(0), int64(0)
	for i := range m.Weights {
		w := &m.Weights[i]
		if elements += w.Elements(); w.Param {
			parameters += w.Elements()
		}
	}
	if parameters != 2_542_856 || sum != 2_542_856 {
		t.Errorf("got %d parameters; the config's sum is %d", parameters, sum)
	}
	if len(m.Weights) != 244 || elements != all || m.Schema != "8.20" || a.TorchVersion != "2.12.0+cpu" {
		t.Errorf("got %d weights of %d elements, want %d; schema %s, torch %s", len(m.Weights), elements, all, m.Schema, a.TorchVersion)
	}
	dims := func(n ...int64) (d []pt2.Dim) {
		for _, n := range n {
			d = append(d, pt2.Dim{Size: n})
		}
		return d
	}
	if diff := cmp.Diff([]pt2.Value{{Name: "x", Kind: "tensor", DType: "F32", Shape: dims(1, 3, 224, 224)}}, m.Inputs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]pt2.Value{{Name: "addmm_1", Kind: "tensor", DType: "F32", Shape: dims(1, 1000)}}, m.Outputs); diff != "" {
		t.Error(diff)
	}
	if w := m.Weights[0]; w.Name != "features.0.0.weight" || !slices.Equal(w.Shape, []int64{16, 3, 3, 3}) || !w.Param || !w.Contiguous() {
		t.Errorf("first weight: %+v", w)
	}
}

// counted counts what is read.
type counted struct {
	r     io.ReaderAt
	reads [][2]int64 // offset and length
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.reads = append(c.reads, [2]int64{off, int64(len(p))})
	return c.r.ReadAt(p, off)
}

// TestOpeningCostsDocuments: no weight is read, and documents that are
// neighbours are one read.
func TestOpeningCostsDocuments(t *testing.T) {
	const weights = 4 << 20
	a := sharing()
	a.Storages = [][]byte{make([]byte, weights), make([]byte, weights)}
	// The sample input pushes the documents out of the tail.
	a.Records = []modeltest.Record{{Name: "data/sample_inputs/encoder_0.pt", Data: make([]byte, weights)}}
	b := modeltest.PT2(t, a)
	c := &counted{r: bytes.NewReader(b)}
	if _, err := pt2.Open(c, int64(len(b))); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, r := range c.reads {
		total += r[1]
		if r[0] < 2*weights && r[1] > 0 {
			t.Errorf("%d bytes are read at %d, of weights", r[1], r[0])
		}
	}
	if len(c.reads) != 2 || total > 110_000 {
		t.Errorf("opening took %d reads of %d bytes: %v", len(c.reads), total, c.reads)
	}
}

// TestLongDocumentIsReadInPieces: memory does not grow with a definition.
func TestLongDocumentIsReadInPieces(t *testing.T) {
	long := strings.Replace(string(modeltest.Definition(t, sharing().Models[0])), `"stack_trace"`,
		`"pad": "`+strings.Repeat("x", 1<<20)+`"}},`+strings.Repeat(`{"pad": "`+strings.Repeat("y", 1<<20)+`"},`, 9)+`{"metadata": {"stack_trace"`, 1)
	a := modeltest.Archive{Records: []modeltest.Record{{Name: "models/m.json", Data: []byte(long)}}}
	b := modeltest.PT2(t, a)
	c := &counted{r: bytes.NewReader(b)}
	if _, err := pt2.Open(c, int64(len(b))); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.reads {
		if r[1] > 1<<20 {
			t.Errorf("%d bytes are read at once", r[1])
		}
	}
	if len(c.reads) > 16 {
		t.Errorf("%d reads", len(c.reads))
	}
}
