package modeltest

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Types of elements by their numbers in torch/_export/serde/schema.py.
const (
	Byte     = 1
	Long     = 5
	Half     = 6
	Float    = 7
	Double   = 8
	Complex  = 10
	BFloat16 = 13
)

// Archive is a PT2 archive as torch.export.save of torch 2.8 and later lays it
// out.
type Archive struct {
	// Root is the root folder, "archive" where it is empty.
	Root string
	// ByteOrder is "little" where it is empty.
	ByteOrder string
	// Storages are the files data/weights/weight_0 and up, which the models share,
	// Constants data/constants/tensor_0 and up.
	Storages, Constants [][]byte
	Models              []Model
	// Records are more files, before those that torch writes last.
	Records []Record
}

// Model is an exported program.
type Model struct {
	Name string
	// Torch is the torch_version, "2.9.1+cpu" where it is empty.
	Torch              string
	Weights, Constants []Weight
	Inputs, Outputs    []Value
}

// Weight is a view of a storage.
type Weight struct {
	Name          string
	DType         int
	Shape, Stride []int64
	Offset        int64 // in elements
	Storage       int   // its number
	Param, Pickle bool
}

// Value is an input or output. A dimension is an int or a symbol.
type Value struct {
	Name  string
	DType int
	Shape []any
}

// PT2 returns the archive's bytes.
func PT2(t testing.TB, a Archive) []byte {
	t.Helper()
	var records []Record
	for i, b := range a.Storages {
		records = append(records, Record{fmt.Sprintf("data/weights/weight_%d", i), b})
	}
	for i, b := range a.Constants {
		records = append(records, Record{fmt.Sprintf("data/constants/tensor_%d", i), b})
	}
	for _, m := range a.Models {
		records = append(records,
			Record{"data/weights/" + m.Name + "_weights_config.json", WeightsConfig(t, "weight_", m.Weights)},
			Record{"data/constants/" + m.Name + "_constants_config.json", WeightsConfig(t, "tensor_", m.Constants)},
			Record{"models/" + m.Name + ".json", Definition(t, m)},
			Record{"data/sample_inputs/" + m.Name + ".pt", []byte("\x80\x02].")},
		)
	}
	records = append(records, a.Records...)
	records = append(records, Record{"archive_format", []byte("pt2")}, Record{"archive_version", []byte("0")})
	root, order := a.Root, a.ByteOrder
	if root == "" {
		root = "archive"
	}
	if order == "" {
		order = "little"
	}
	return TorchZip(root, order, records...)
}

type object = map[string]any

// WeightsConfig returns a <m>_weights_config.json or <m>_constants_config.json
// whose files' names begin with prefix.
func WeightsConfig(t testing.TB, prefix string, weights []Weight) []byte {
	t.Helper()
	var entries []string
	for _, w := range weights {
		entries = append(entries, marshal(t, w.Name)+": "+marshal(t, object{
			"path_name":   fmt.Sprint(prefix, w.Storage),
			"is_param":    w.Param,
			"use_pickle":  w.Pickle,
			"tensor_meta": tensorMeta(w.DType, ints(w.Shape), ints(w.Stride), w.Offset),
		}))
	}
	return []byte(`{"config": {` + strings.Join(entries, ", ") + `}}`)
}

func tensorMeta(dtype int, sizes, strides []object, offset int64) object {
	return object{
		"dtype": dtype, "sizes": sizes, "strides": strides, "storage_offset": object{"as_int": offset},
		"layout": 7, "requires_grad": false, "device": object{"type": "cpu", "index": nil},
	}
}

func ints(n []int64) []object {
	out := []object{}
	for _, v := range n {
		out = append(out, object{"as_int": v})
	}
	return out
}

// Definition returns a models/<m>.json: the parts that say what goes in and out,
// a node, and what else torch writes.
func Definition(t testing.TB, m Model) []byte {
	t.Helper()
	var inputs, outputs []object
	var inputSpecs, outputSpecs []object
	values := object{}
	for i, w := range m.Weights {
		name := fmt.Sprintf("p_%d", i)
		inputs = append(inputs, object{"as_tensor": object{"name": name}})
		values[name] = tensorMeta(w.DType, ints(w.Shape), ints(w.Stride), 0)
		arg := object{"name": name}
		if w.Param {
			inputSpecs = append(inputSpecs, object{"parameter": object{"arg": arg, "parameter_name": w.Name}})
		} else {
			inputSpecs = append(inputSpecs, object{"buffer": object{"arg": arg, "buffer_name": w.Name, "persistent": true}})
		}
	}
	for i, w := range m.Constants {
		name := fmt.Sprintf("c_%d", i)
		inputs = append(inputs, object{"as_tensor": object{"name": name}})
		values[name] = tensorMeta(w.DType, ints(w.Shape), ints(w.Stride), 0)
		inputSpecs = append(inputSpecs, object{"tensor_constant": object{"arg": object{"name": name}, "tensor_constant_name": w.Name}})
	}
	for _, v := range m.Inputs {
		arg := object{"as_tensor": object{"name": v.Name}}
		inputs, inputSpecs = append(inputs, arg), append(inputSpecs, object{"user_input": object{"arg": arg}})
		values[v.Name] = valueMeta(v)
	}
	for _, v := range m.Outputs {
		arg := object{"as_tensor": object{"name": v.Name}}
		outputs, outputSpecs = append(outputs, arg), append(outputSpecs, object{"user_output": object{"arg": arg}})
		values[v.Name] = valueMeta(v)
	}
	torch := m.Torch
	if torch == "" {
		torch = "2.9.1+cpu"
	}
	// Python keeps the order of a dataclass's fields: the graph's inputs and outputs
	// come before the values.
	return fmt.Appendf(nil, `{"graph_module": {"graph": {"inputs": %s, "outputs": %s, "nodes": [{"target": "torch.ops.aten.relu.default", "inputs": [], "outputs": [], "metadata": {"stack_trace": "File \"m.py\""}}], "tensor_values": %s, "sym_int_values": {}}, "signature": {"input_specs": %s, "output_specs": %s}, "module_call_graph": []}, "opset_version": {"aten": 10}, "range_constraints": {"s77": {"min_val": 0, "max_val": 9223372036854775806}}, "schema_version": {"major": 8, "minor": 14}, "verifiers": ["ATEN"], "torch_version": %s}`,
		marshal(t, list(inputs)), marshal(t, list(outputs)), marshal(t, values), marshal(t, list(inputSpecs)), marshal(t, list(outputSpecs)), marshal(t, torch))
}

func list(o []object) []object {
	if o == nil {
		o = []object{}
	}
	return o
}

func valueMeta(v Value) object {
	sizes, strides := []object{}, []object{}
	for _, d := range v.Shape {
		size := object{"as_int": d}
		if symbol, ok := d.(string); ok {
			size = object{"as_expr": object{"expr_str": symbol, "hint": object{"as_int": 4}}}
		}
		sizes, strides = append(sizes, size), append(strides, size)
	}
	return tensorMeta(v.DType, sizes, strides, 0)
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func deflated(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
