package pack_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/npy"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/google/go-cmp/cmp"
)

// npyFile writes an array as numpy does.
func npyFile(t testing.TB, name, dtype string, shape []int64, elements []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := npy.WriteHeader(&b, dtype, shape); err != nil {
		t.Fatal(err)
	}
	b.Write(elements)
	return file(t, name, b.Bytes())
}

func le(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

func TestTestsBringTheirTensors(t *testing.T) {
	x := npyFile(t, "x.npy", "F32", []int64{2, 3}, le(1, 2, 3, 4, 5, 6))
	y := npyFile(t, "y.npy", "U8", []int64{}, []byte{7})
	both := file(t, "both.safetensors", modeltest.Safetensors(t, nil,
		modeltest.Tensor{Name: "output.y", DType: "U8", Data: []byte{9}},
		modeltest.Tensor{Name: "input.x", DType: "F32", Shape: []int64{1, 3}, Data: le(0, 0, 1)},
	))
	opts := noop
	opts.AddSelfTests = []pack.Test{{
		Name: "first", Inputs: []pack.TestValue{{Name: "x", From: x}}, Outputs: []pack.TestValue{{Name: "y", From: y}},
	}}
	opts.AddExamples = []pack.Test{{Description: "all of it", File: both}}
	c := open(t, opts, tree(t, map[string]string{"a": "x"}))
	wantListing(t, c, "carton.toml", "model/a", "tensor_data/index.toml", "tensor_data/tensor_0.bin", "tensor_data/tensor_1.bin",
		"tensor_data/tensor_2.bin", "tensor_data/tensor_3.bin")
	const wantIndex = `[[tensor]]
name = "self_test_0.input.x"
dtype = "float32"
shape = [2, 3]
file = "tensor_0.bin"
inner = []

[[tensor]]
name = "self_test_0.expected.y"
dtype = "uint8"
shape = []
file = "tensor_1.bin"
inner = []

[[tensor]]
name = "example_0.input.x"
dtype = "float32"
shape = [1, 3]
file = "tensor_2.bin"
inner = []

[[tensor]]
name = "example_0.output.y"
dtype = "uint8"
shape = []
file = "tensor_3.bin"
inner = []
`
	if diff := cmp.Diff(wantIndex, read(t, c, carton.IndexName)); diff != "" {
		t.Error(diff)
	}
	const wantTests = `
[[self_test]]
name = "first"
inputs = { x = "@tensor_data/self_test_0.input.x" }
expected_out = { y = "@tensor_data/self_test_0.expected.y" }

[[example]]
description = "all of it"
inputs = { x = "@tensor_data/example_0.input.x" }
sample_out = { y = "@tensor_data/example_0.output.y" }
`
	toml := read(t, c, carton.InfoName)
	if !strings.Contains(toml, wantTests) {
		t.Errorf("got %s\nwant in it %s", toml, wantTests)
	}
	if got, want := c.Info.Inputs[0].Shape.String()+c.Info.Outputs[0].Shape.String(), `["*", 3][]`; got != want {
		t.Errorf("got the shapes %s, want what both tests fit, %s", got, want)
	}
	for i, want := range [][]byte{le(1, 2, 3, 4, 5, 6), {7}, le(0, 0, 1), {9}} {
		if got := read(t, c, "tensor_data/tensor_"+string(rune('0'+i))+".bin"); got != string(want) {
			t.Errorf("tensor %d: got %x, want %x", i, got, want)
		}
	}
	body, err := c.OpenRange(t.Context(), "tensor_data/tensor_0.bin", 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	four := make([]byte, 4)
	if _, err := body.Read(four); err != nil || !bytes.Equal(four, le(2)) {
		t.Errorf("a range: got %x, %v", four, err)
	}
	_, name := assemble(t, c)
	src, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil || !report.OK() || len(report.Findings) > 0 {
		t.Errorf("got %+v, %v", report, err)
	}
}

// numpy saves transposed arrays in Fortran order, and some machines big-endian.
func TestArraysArePutInOrder(t *testing.T) {
	header := func(descr string, fortran bool, shape string) []byte {
		text := "{'descr': '" + descr + "', 'fortran_order': " + map[bool]string{true: "True", false: "False"}[fortran] + ", 'shape': " + shape + ", }"
		text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
		b := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
		return append(b, text...)
	}
	// [[[0 1 2 3] [4 5 6 7] [8 9 10 11]] [[12 …] …]] in C order.
	want := make([]byte, 24*2)
	for i := range 24 {
		binary.LittleEndian.PutUint16(want[2*i:], uint16(i))
	}
	fortran := make([]byte, 0, len(want))
	for k := range 4 {
		for j := range 3 {
			for i := range 2 {
				fortran = binary.LittleEndian.AppendUint16(fortran, uint16(i*12+j*4+k))
			}
		}
	}
	swapped := func(b []byte) []byte {
		b = slices.Clone(b)
		for i := 0; i < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
		return b
	}
	for what, content := range map[string][]byte{
		"C order":             append(header("<u2", false, "(2, 3, 4)"), want...),
		"Fortran":             append(header("<u2", true, "(2, 3, 4)"), fortran...),
		"big-endian":          append(header(">u2", false, "(2, 3, 4)"), swapped(want)...),
		"Fortran, big-endian": append(header(">u2", true, "(2, 3, 4)"), swapped(fortran)...),
	} {
		opts := noop
		opts.AddSelfTests = []pack.Test{{Inputs: []pack.TestValue{{Name: "x", From: file(t, "x.npy", content)}}}}
		c := open(t, opts, tree(t, map[string]string{"a": "x"}))
		if got := read(t, c, "tensor_data/tensor_0.bin"); got != string(want) {
			t.Errorf("%s: got %x, want %x", what, got, want)
		}
	}
	for _, shape := range []string{"()", "(0, 3)", "(1,)"} {
		n := map[string]int{"()": 1, "(0, 3)": 0, "(1,)": 1}[shape]
		opts := noop
		name := file(t, "x.npy", append(header(">u2", true, shape), make([]byte, 2*n)...))
		opts.AddSelfTests = []pack.Test{{Inputs: []pack.TestValue{{Name: "x", From: name}}}}
		if got := read(t, open(t, opts, tree(t, map[string]string{"a": "x"})), "tensor_data/tensor_0.bin"); len(got) != 2*n {
			t.Errorf("%s: got %d bytes, want %d", shape, len(got), 2*n)
		}
	}
}

func TestTestsThatCanNotBe(t *testing.T) {
	x := npyFile(t, "x.npy", "F32", []int64{1}, le(1))
	half := npyFile(t, "half.npy", "F16", []int64{1}, []byte{0, 0})
	short := npyFile(t, "short.npy", "F32", []int64{2}, le(1))
	odd := file(t, "odd.safetensors", modeltest.Safetensors(t, nil,
		modeltest.Tensor{Name: "x", DType: "U8", Data: []byte{9}}, modeltest.Tensor{Name: "y", DType: "U8", Data: []byte{9}}))
	value := func(name, from string) []pack.TestValue { return []pack.TestValue{{Name: name, From: from}} }
	dir := tree(t, map[string]string{"a": "x"})
	for _, c := range []struct {
		test pack.Test
		kind error
		want string
	}{
		{pack.Test{}, pack.ErrOptions, "got no inputs"},
		{pack.Test{Inputs: value("x", "x.txt")}, pack.ErrOptions, "want a .npy or .safetensors file"},
		{pack.Test{Inputs: value("x", odd)}, pack.ErrOptions, "holds 2 tensors, want one"},
		{pack.Test{File: odd}, pack.ErrOptions, "want names like input.x and expected.y"},
		{pack.Test{Inputs: value("x", half)}, carton.ErrFormat, "got elements of the type F16"},
		{pack.Test{Inputs: value("x", short)}, carton.ErrFormat, "has 4 bytes of elements, want 8"},
		{pack.Test{Inputs: append(value("x", x), value("x", x)...)}, pack.ErrOptions, "the input x is given twice"},
		{pack.Test{Inputs: value("x", "@tensor_data/t")}, pack.ErrOptions, "there is no folder of tensors"},
		{pack.Test{Inputs: value("x", file(t, "e.npy", nil))}, npy.ErrFormat, "e.npy"},
	} {
		opts := noop
		opts.AddSelfTests = []pack.Test{c.test}
		refused(t, opts, c.kind, c.want, dir)
	}
	opts := noop
	opts.TensorData = tree(t, map[string]string{"index.toml": "tensor = []\n"})
	opts.AddSelfTests = []pack.Test{{Inputs: value("x", x)}}
	refused(t, opts, pack.ErrOptions, "got a folder of tensors and tensors of a test", dir)
	// What is declared must fit, as everywhere else.
	opts = noop
	opts.Inputs = []carton.TensorSpec{{Name: "other", DType: carton.Float32, Shape: carton.Shape{Symbol: "*"}}}
	opts.AddSelfTests = []pack.Test{{Inputs: value("x", x)}}
	refused(t, opts, carton.ErrFormat, "declares no input", dir)
}

// A test's tensors are compared with what is declared, and its outputs declared
// with its inputs: what is not so is said, and --strict refuses it.
func TestTestsThatDoNotFitTheDeclaration(t *testing.T) {
	x := modeltest.Safetensors(t, nil, modeltest.Tensor{Name: "input.x", DType: "F64", Shape: []int64{3, 4}, Data: make([]byte, 96)})
	test := pack.Test{File: file(t, "t.safetensors", x)}
	dir := tree(t, map[string]string{"a.bin": "a"})
	declared := noop
	declared.AddSelfTests = []pack.Test{test}
	declared.Inputs = []carton.TensorSpec{{Name: "x", DType: carton.Float32, Shape: carton.Shape{Dims: []carton.Dim{{Symbol: "batch"}, {Size: 3}}}}}
	declared.Outputs = []carton.TensorSpec{{Name: "y", DType: carton.Float32, Shape: carton.Shape{Symbol: "*"}}}
	wantWarnings(t, open(t, declared, dir), `the tensor is float64, and float32 is declared`)
	declared.Inputs[0].DType = carton.Float64
	wantWarnings(t, open(t, declared, dir), `the tensor has the shape [3, 4], and ["batch", 3] is declared`)
	declared.Strict = true
	refused(t, declared, carton.ErrFormat, "is declared", dir)
	alone := noop
	alone.AddSelfTests = []pack.Test{test}
	wantWarnings(t, open(t, alone, dir), "no [[output]] is declared beside [[input]]")
}
