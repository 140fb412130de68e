package pt2_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

var ignoreInner = cmpopts.IgnoreUnexported(pt2.Tensor{})

type record = modeltest.Record

func text(name, s string) record { return record{Name: name, Data: []byte(s)} }

// TestAOTInductor reads compiled packages of one model for two backends and of
// another, whose weights are pickles that both share.
func TestAOTInductor(t *testing.T) {
	const dir = "data/aotinductor/"
	b := modeltest.TorchZip("compiled", "little",
		text(dir+"m1-a100/abc.wrapper.so", "\x7fELF"),
		text(dir+"m1-a100/abc.wrapper_metadata.json", `{"AOTI_DEVICE_KEY": "cuda", "AOTI_CUDA_ARCH": "sm_80", "n": 3, "x": {"y": []}}`),
		text(dir+"m1-a100/abc.kernel_metadata.json", `not read`),
		text(dir+"m1-a100/abc.json", `{"nodes": [{"name": "a", "node": {"inputs": [], "target": "my.op2"}}, {"name": "b", "node": {"target": "my.op1"}}, {"name": "c", "node": {"target": "my.op2"}}]}`),
		text(dir+"m1-a100/weights_config.json", `{"fc.weight": ["weight_0", [3, 4], [4, 1], 0], "fc.t": ["weight_0", [4, 3], [1, 4], 0], "s": ["weight_0", [], [], 11]}`),
		text(dir+"m1-h100/xyz.cubin", "cubin"),
		text(dir+"m1-h100/params.json", `[1, 2]`),
		text(dir+"other/q_metadata.json", `{}`),
		text("data/weights/weight_0", "\x80\x02."),
		text("archive_format", "pt2"), text("archive_version", "0"))
	a := mustOpen(t, b)
	weight := func(name string, shape, stride []int64, at int64) pt2.Tensor {
		return pt2.Tensor{
			Name: name, Shape: shape, Stride: stride, StorageOffset: at, File: "data/weights/weight_0",
			Offset: -1, Pickled: true,
		}
	}
	want := []pt2.Model{
		{Name: "m1", AOTInductor: []pt2.Package{
			{
				Folder: "m1-a100", Backend: "a100", Device: "cuda",
				Metadata: map[string]string{"AOTI_DEVICE_KEY": "cuda", "AOTI_CUDA_ARCH": "sm_80"},
				Weights: []pt2.Tensor{
					weight("fc.weight", []int64{3, 4}, []int64{4, 1}, 0),
					weight("fc.t", []int64{4, 3}, []int64{1, 4}, 0),
					weight("s", []int64{}, []int64{}, 11),
				},
			},
			{Folder: "m1-h100", Backend: "h100"},
		}},
		{Name: "other", AOTInductor: []pt2.Package{{Folder: "other"}}},
	}
	if diff := cmp.Diff(want, a.Models, ignoreInner); diff != "" {
		t.Error(diff)
	}
	if w := a.Models[0].AOTInductor[0].Weights[0]; w.Bytes() != -1 || w.Elements() != 12 || w.Unreadable() != "is pickled" {
		t.Errorf("%d bytes, %d elements, %q", w.Bytes(), w.Elements(), w.Unreadable())
	}
}

// TestBackends: which part of a folder's name is the model's is told by evidence.
func TestBackends(t *testing.T) {
	for _, c := range []struct {
		name    string
		folders []string
		more    []record
		want    string // model/backend
	}{
		{"a lone name", []string{"resnet-50"}, nil, "resnet-50/"},
		{"a model definition", []string{"a-b-cpu"}, []record{{Name: "models/a-b.json", Data: []byte(`{}`)}}, "a-b/cpu"},
		{"the longest model", []string{"a-b-cpu"}, []record{{Name: "models/a-b.json", Data: []byte(`{}`)}, {Name: "models/a.json", Data: []byte(`{}`)}}, "a/ a-b/cpu"},
		{"the whole name is a model", []string{"a-b"}, []record{{Name: "models/a-b.json", Data: []byte(`{}`)}, {Name: "models/a.json", Data: []byte(`{}`)}}, "a/ a-b/"},
		{"sample inputs", []string{"a-cpu"}, []record{{Name: "data/sample_inputs/a.pt"}}, "a/cpu"},
		{"two backends", []string{"a-b-cpu", "a-b-cuda"}, nil, "a-b/cpu,cuda"},
		{"no backend", []string{"a", "a-cpu"}, nil, "a/ a-cpu/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			records := c.more
			for _, f := range c.folders {
				records = append(records, text("data/aotinductor/"+f+"/w.so", "x"))
			}
			a := mustOpen(t, modeltest.TorchZip("r", "little", append(records, text("archive_format", "pt2"))...))
			var got []string
			for _, m := range a.Models {
				var backends []string
				for _, p := range m.AOTInductor {
					backends = append(backends, p.Backend)
				}
				got = append(got, m.Name+"/"+strings.Join(backends, ","))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestLegacy reads what torch 2.7 and earlier saved: shapes and types come from the
// definition, the bytes are pickles.
func TestLegacy(t *testing.T) {
	m := sharing().Models[1]
	definition := modeltest.Definition(t, m)
	definition = bytes.Replace(definition, []byte(`"input_specs": [`), []byte(`"input_specs": [
		{"buffer": {"arg": {"name": "p_1"}, "buffer_name": "cache", "persistent": false}},
		{"custom_obj": {"arg": {"name": "o", "class_fqn": "C"}, "custom_obj_name": "tokenizer"}},
		{"token": {"arg": {"name": "t"}}},
		{"constant_input": {"name": "flag", "value": {"as_bool": true}}},
		{"user_input": {"arg": {"as_sym_int": {"as_name": "s77"}}}},
		{"user_input": {"arg": {"as_none": true}}},
		{"user_input": {"arg": {"as_float": -Infinity}}},
		{"user_input": {"arg": {"as_surprise": [1]}}},`), 1)
	for _, deflate := range []bool{false, true} {
		a := mustOpen(t, modeltest.PlainZip(t, deflate,
			record{Name: "serialized_exported_program.json", Data: definition},
			text("serialized_state_dict.pt", "pickle"), text("serialized_constants.pt", "pickle"), text("serialized_example_inputs.pt", "pickle"),
			text("version", "8.4"), text("extra_files/note.txt", "hi")))
		pickled := func(name string, file string, param bool, shape ...int64) pt2.Tensor {
			stride := make([]int64, len(shape))
			for i, n := len(shape)-1, int64(1); i >= 0; i-- {
				stride[i], n = n, n*shape[i]
			}
			return pt2.Tensor{Name: name, DType: "F32", Shape: shape, Stride: stride, File: file, Offset: -1, Param: param, Pickled: true}
		}
		const weights, constants = "serialized_state_dict.pt", "serialized_constants.pt"
		want := []pt2.Model{{
			Name: "model", TorchVersion: "2.8.0", Schema: "8.14",
			Weights:   []pt2.Tensor{pickled("fc.weight", weights, true, 4, 3), pickled("row", weights, true, 2), pickled("tied", weights, true, 3, 4)},
			Constants: []pt2.Tensor{pickled("cache", constants, false, 2), pickled("lifted", constants, false, 3)},
			Inputs: []pt2.Value{
				{Name: "flag", Kind: "bool"},
				{Name: "s77", Kind: "int"},
				{Kind: "none"},
				{Kind: "float"},
				{Kind: "other"},
				{Name: "ids", Kind: "tensor", DType: "I64", Shape: []pt2.Dim{{Size: 1}, {Size: -1, Symbol: "2*s77 + 1"}}},
			},
			Outputs: []pt2.Value{{Name: "logits", Kind: "tensor", DType: "BF16", Shape: []pt2.Dim{}}},
		}}
		if diff := cmp.Diff(want, a.Models, ignoreInner); diff != "" {
			t.Error(diff)
		}
	}
}

// TestBadLegacy: what a definition says of pickled tensors must be possible too;
// where it says nothing of one, only its name is known.
func TestBadLegacy(t *testing.T) {
	legacy := func(value string) []byte {
		return modeltest.PlainZip(t, false, text("serialized_exported_program.json",
			`{"graph_module":{"graph":{"tensor_values":{"p":`+value+`}},"signature":{"input_specs":[{"parameter":{"arg":{"name":"p"},"parameter_name":"w"}}]}}}`))
	}
	for value, want := range map[string]string{
		`{"dtype":7,"strides":[],"sizes":[{"as_expr":{"expr_str":"s0"}}]}`:                           "has the symbol s0",
		`{"dtype":7,"strides":[],"sizes":[{"as_int":4611686018427387904}]}`:                          "too large for any file",
		`{"dtype":7,"strides":[],"sizes":[{"as_int":1152921504606846976}]}`:                          "too large for any file",
		`{"dtype":7,"strides":[],"sizes":[{"as_int":4294967296},{"as_int":4294967296}]}`:             "too large for any file",
		`{"dtype":7,"strides":[],"sizes":[` + strings.Repeat(`{"as_int":1},`, 64) + `{"as_int":1}]}`: "more than 64 dimensions",
	} {
		b := legacy(value)
		if _, err := open(b); !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", value, err, want)
		}
	}
	b := legacy(`{"dtype":7,"strides":[],"sizes":[{"as_int":4611686018427387904},{"as_int":4611686018427387904},{"as_int":0}]}`)
	a := mustOpen(t, b)
	if w := a.Models[0].Weights[0]; w.Elements() != 0 || w.Bytes() != 0 {
		t.Errorf("an empty tensor has %d elements", w.Elements())
	}
	b = legacy(`{"dtype":99,"strides":[],"sizes":[{"as_int":3}]}`)
	if w := mustOpen(t, b).Models[0].Weights[0]; w.DType != "" || w.Bytes() != -1 || w.Elements() != 3 {
		t.Errorf("of an unknown type: %+v", w)
	}
	b = modeltest.PlainZip(t, false, text("serialized_exported_program.json",
		`{"graph_module":{"signature":{"input_specs":[{"parameter":{"arg":{"name":"p"},"parameter_name":"w"}}]}}}`))
	if w := mustOpen(t, b).Models[0].Weights[0]; w.Name != "w" || w.DType != "" || w.Bytes() != -1 {
		t.Errorf("of no value: %+v", w)
	}
}

// TestPickledStateDict reads the first form with a root folder, which had one
// pickle of weights a model.
func TestPickledStateDict(t *testing.T) {
	m := sharing().Models[1]
	a := mustOpen(t, modeltest.TorchZip("p", "little",
		record{Name: "models/decoder.json", Data: modeltest.Definition(t, m)},
		text("data/weights/decoder.pt", "pickle"), text("data/constants/decoder.pt", "pickle"), text("archive_format", "pt2")))
	got := a.Models[0]
	if len(got.Weights) != 3 || len(got.Constants) != 1 || !got.Weights[0].Pickled || got.Weights[0].File != "data/weights/decoder.pt" || got.Constants[0].File != "data/constants/decoder.pt" {
		t.Errorf("got %+v", got)
	}
}

// TestObjects: constants that are no tensors are there, and belong to no list.
func TestObjects(t *testing.T) {
	a := mustOpen(t, modeltest.TorchZip("p", "little",
		record{Name: "models/m.json", Data: []byte(`{"graph_module":{"signature":{"input_specs":[{"custom_obj":{"arg":{"name":"o"},"custom_obj_name":"tok"}}]}}}`)},
		text("data/constants/custom_obj_0", "pickle"), text("data/weights/m_weights_config.json", `{"config": {}}`),
		text("data/constants/m_constants_config.json", `{"config": {"tok": {"path_name": "custom_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null}}}`),
		text("archive_format", "pt2")))
	if m := a.Models[0]; len(m.Weights)+len(m.Constants)+len(a.Findings) != 0 {
		t.Errorf("got %+v with %q", m, a.Findings)
	}
}

// TestFlatExport: an archive that was zipped again without its root folder is
// read all the same.
func TestFlatExport(t *testing.T) {
	records := modeltest.Records(t, modeltest.PT2(t, sharing()))
	for i := range records {
		records[i].Name = strings.TrimPrefix(records[i].Name, "archive/")
	}
	b := modeltest.PlainZip(t, false, records...)
	a := mustOpen(t, b)
	if len(a.Models) != 2 {
		t.Errorf("got %d models, want 2", len(a.Models))
	}
	if got := asFloats(read(t, b, &decoder(a)[1])); !slices.Equal(got, []float32{5, 7}) {
		t.Errorf("row: got %v", got)
	}
}

// TestNotPT2: other zips are called what they are.
func TestNotPT2(t *testing.T) {
	script, err := os.ReadFile(testenv.Foreign(t, "carton/test_model.pt"))
	if err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string][]byte{
		"is a TorchScript archive":     script,
		"is a file of torch.save":      modeltest.TorchZip("archive", "little", text("data.pkl", "x"), text("data/0", "y")),
		"holds no archive_format":      modeltest.TorchZip("archive", "little", text("data/0", "y")),
		"is not a PT2 archive":         modeltest.PlainZip(t, false, text("a", "x"), text("b/c", "y")),
		"archive_format is torchnativ": modeltest.TorchZip("archive", "little", text("archive_format", "torchnativ")),
	} {
		_, err := open(b)
		if !errors.Is(err, pt2.ErrNotPT2) || errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	_, err = open(modeltest.PlainZip(t, false))
	if !errors.Is(err, pt2.ErrNotPT2) || len(hint.Of(err)) != 1 {
		t.Errorf("an empty zip: got %v with hints %q", err, hint.Of(err))
	}
}

// TestSerializationID: the half that is a hash of CRCs is recomputed.
func TestSerializationID(t *testing.T) {
	good := modeltest.PT2(t, sharing())
	a := mustOpen(t, good)
	if has(a.Findings, "changed after torch wrote it") || has(a.Findings, "40 digits") {
		t.Errorf("got %q", a.Findings)
	}
	records := modeltest.Records(t, good)
	for i := range records {
		if records[i].Name == "archive/extra/labels.json" {
			records[i].Data = []byte(`["dog"]`)
		}
	}
	if a := mustOpen(t, modeltest.PlainZip(t, false, records...)); !has(a.Findings, "changed after torch wrote it") {
		t.Errorf("a changed file: got %q", a.Findings)
	}
	records[len(records)-1].Data = []byte("123")
	if a := mustOpen(t, modeltest.PlainZip(t, false, records...)); !has(a.Findings, "not 40 digits") {
		t.Errorf("three digits: got %q", a.Findings)
	}
}

func has(findings []string, part string) bool {
	return slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, part) })
}
