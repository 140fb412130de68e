package safetensors_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// written is a tensor to write, and its bytes.
type written struct {
	safetensors.Tensor
	data string
}

func tensorOf(name, dtype, data string, shape ...int64) written {
	return written{safetensors.Tensor{Name: name, DType: dtype, Shape: shape}, data}
}

// write returns a file of these tensors, the elements where its header has them.
func write(metadata map[string]string, tensors ...written) ([]byte, error) {
	var header []safetensors.Tensor
	data := map[string]string{}
	for _, t := range tensors {
		header, data[t.Name] = append(header, t.Tensor), t.data
	}
	var b bytes.Buffer
	if err := safetensors.WriteHeader(&b, metadata, header); err != nil {
		return b.Bytes(), err
	}
	h, err := safetensors.ReadHeader(bytes.NewReader(b.Bytes()), -1)
	if err != nil {
		return nil, err
	}
	for _, t := range h.Tensors {
		b.WriteString(data[t.Name])
	}
	return b.Bytes(), nil
}

// TestWriteGolden: what is written is fixed, byte for byte, for digests depend on
// it.
func TestWriteGolden(t *testing.T) {
	tensors := []written{
		tensorOf("b", "U8", "xyz", 3),
		tensorOf("a<é\"", "U8", "w"),
		tensorOf("wide", "F64", "01234567", 1, 1),
		tensorOf("half", "F16", "", 0, 5),
		tensorOf("small", "F4", "4", 2),
	}
	const header = `{"__metadata__":{"format":"pt","k":""},"wide":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},` +
		`"half":{"dtype":"F16","shape":[0,5],"data_offsets":[8,8]},` +
		`"a<é\"":{"dtype":"U8","shape":[],"data_offsets":[8,9]},"b":{"dtype":"U8","shape":[3],"data_offsets":[9,12]},` +
		`"small":{"dtype":"F4","shape":[2],"data_offsets":[12,13]}}`
	want := file(header+strings.Repeat(" ", -len(header)&7), 0)
	want = append(want, "01234567wxyz4"...)
	for range 2 {
		got, err := write(map[string]string{"k": "", "format": "pt"}, tensors...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Error(diff)
		}
		tensors[0], tensors[1], tensors[2], tensors[4] = tensors[4], tensors[2], tensors[0], tensors[1] // any order
	}
	if len(want)%8 != 5 || (len(want)-13)%8 != 0 {
		t.Errorf("tensors begin at %d", len(want)-13)
	}
}

func TestWriteNothing(t *testing.T) {
	for _, metadata := range []map[string]string{nil, {}} {
		b, err := write(metadata)
		if err != nil {
			t.Fatal(err)
		}
		h, err := open(b)
		if err != nil || len(h.Tensors) != 0 || (h.Metadata == nil) != (metadata == nil) || len(b)%8 != 0 {
			t.Errorf("got %+v of %d bytes, %v", h, len(b), err)
		}
	}
}

// TestWriteAsTheReference: real files, written again, are the same: mnist to the
// byte; dtypes but for its header's order of entries, in which older releases
// were at random.
func TestWriteAsTheReference(t *testing.T) {
	for _, name := range []string{"mnist", "dtypes"} {
		b, err := os.ReadFile(testenv.Foreign(t, "safetensors/"+name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		h, err := open(b)
		if err != nil {
			t.Fatal(err)
		}
		var tensors []written
		for _, x := range h.Tensors {
			tensors = append(tensors, tensorOf(x.Name, x.DType, string(b[h.DataStart+x.Begin:h.DataStart+x.End]), x.Shape...))
		}
		again, err := write(h.Metadata, tensors...)
		if err != nil {
			t.Fatal(err)
		}
		if name == "mnist" && !bytes.Equal(again, b) {
			t.Errorf("%s: %d bytes, written again %d: %.200q and %.200q", name, len(b), len(again), b[8:], again[8:])
		}
		header, err := open(again)
		if diff := cmp.Diff(h, header); err != nil || diff != "" || !bytes.Equal(b[h.DataStart:], again[h.DataStart:]) {
			t.Errorf("%s: %v: %s", name, err, diff)
		}
	}
}

// TestWriteAllTypes: each of the 22 types is written and read back.
func TestWriteAllTypes(t *testing.T) {
	dtypes := []string{
		"BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ",
		"I16", "U16", "F16", "BF16", "I32", "U32", "F32", "C64", "F64", "I64", "U64",
	}
	var tensors []written
	for _, d := range dtypes {
		tensors = append(tensors, tensorOf(d, d, strings.Repeat("x", int(dtype.Named(d).Bits)), 2, 4))
	}
	b, err := write(nil, tensors...)
	if err != nil {
		t.Fatal(err)
	}
	h, err := open(b)
	if err != nil || len(h.Tensors) != 22 {
		t.Fatalf("got %+v, %v", h, err)
	}
	last := 1 << 10
	for _, x := range h.Tensors {
		bits := int(dtype.Named(x.DType).Bits)
		if bits > last && bits > 8 {
			t.Errorf("%s of %d bits stands behind one of %d", x.Name, bits, last)
		}
		if bits >= 8 && (h.DataStart+x.Begin)%int64(bits/8) != 0 {
			t.Errorf("%s begins at %d", x.Name, h.DataStart+x.Begin)
		}
		last = bits
	}
}

func TestWriteRefuses(t *testing.T) {
	u8 := func(name string) written { return tensorOf(name, "U8", "x", 1) }
	for _, c := range []struct {
		name     string
		metadata map[string]string
		tensors  []written
		want     string
	}{
		{"name twice", nil, []written{u8("a"), u8("b"), u8("a")}, `"a" occurs twice`},
		{"metadata's name", nil, []written{u8("__metadata__")}, "no tensor can have this name"},
		{"name is not UTF-8", nil, []written{u8("a\xff")}, "not UTF-8"},
		{"metadata is not UTF-8", map[string]string{"k": "\xff"}, nil, "not UTF-8"},
		{"unknown type", nil, []written{tensorOf("a", "F128", "")}, `got "F128"`},
		{"draft's type", nil, []written{tensorOf("a", "float16", "")}, `got "float16"`},
		{"negative dimension", nil, []written{tensorOf("a", "U8", "", -1)}, "has the shape [-1]"},
		{"half a byte", nil, []written{tensorOf("a", "F4", "", 3)}, "whole bytes"},
		{"shape overflows", nil, []written{tensorOf("a", "U8", "", 1<<40, 1<<40)}, "too large"},
		{"sum overflows", nil, []written{tensorOf("a", "U8", "", 1<<60), tensorOf("b", "U8", "", 1)}, "too large"},
		{"too many dimensions", nil, []written{tensorOf("a", "U8", "", make([]int64, 65)...)}, "more than 64"},
		{"header over the limit", map[string]string{"k": strings.Repeat("x", 20<<20)}, nil, "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := write(c.metadata, c.tensors...)
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a format error with %q", err, c.want)
			}
			if len(b) != 0 {
				t.Errorf("%d bytes were written", len(b))
			}
		})
	}
}

// TestBuilderAndWriterAgree: the tests' own builder and the writer make files of
// the same tensors.
func TestBuilderAndWriterAgree(t *testing.T) {
	built, err := open(modeltest.Safetensors(t, map[string]string{"k": "v"},
		modeltest.Tensor{Name: "b", DType: "F32", Shape: []int64{2}, Data: make([]byte, 8)},
		modeltest.Tensor{Name: "c", DType: "U8", Data: []byte{7}}))
	if err != nil {
		t.Fatal(err)
	}
	b, err := write(map[string]string{"k": "v"}, tensorOf("c", "U8", "\x07"), tensorOf("b", "F32", "\x00\x00\x00\x00\x00\x00\x00\x00", 2))
	if err != nil {
		t.Fatal(err)
	}
	written, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	built.DataStart, written.DataStart = 0, 0 // the one is padded
	if diff := cmp.Diff(built, written); diff != "" {
		t.Error(diff)
	}
}

// FuzzWrite: what is written without an error is read back the same.
func FuzzWrite(f *testing.F) {
	f.Add("a", "F32", int64(2), int64(3), "k", "v")
	f.Add("é\"\\\n", "F4", int64(2), int64(1), "", "\\ufffd")
	f.Fuzz(func(t *testing.T, name, typeName string, d0, d1 int64, key, value string) {
		if d0 > 100 || d1 > 100 {
			return
		}
		size := 0
		if safetensors.HasType(typeName) {
			size = max(0, int(d0*d1)) * int(dtype.Named(typeName).Bits) / 8
		}
		b, err := write(map[string]string{key: value}, tensorOf(name, typeName, strings.Repeat("1", size), d0, d1))
		if err != nil {
			if !errors.Is(err, safetensors.ErrFormat) {
				t.Fatalf("got %v", err)
			}
			return
		}
		h, err := open(b)
		if err != nil {
			t.Fatal(err)
		}
		want := safetensors.Tensor{Name: name, DType: typeName, Shape: []int64{d0, d1}, End: int64(size)}
		if diff := cmp.Diff([]safetensors.Tensor{want}, h.Tensors); diff != "" || h.Metadata[key] != value || h.DataStart%8 != 0 {
			t.Fatalf("%s, metadata %q", diff, h.Metadata)
		}
	})
}
