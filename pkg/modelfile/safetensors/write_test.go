package safetensors_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// tensorOf is a tensor to write whose bytes are these.
func tensorOf(name string, dtype safetensors.DType, data string, shape ...int64) safetensors.WriteTensor {
	return safetensors.WriteTensor{
		Name: name, DType: dtype, Shape: shape,
		Open: func() (io.Reader, error) { return iotest.OneByteReader(strings.NewReader(data)), nil },
	}
}

func write(metadata map[string]string, tensors ...safetensors.WriteTensor) ([]byte, error) {
	var b bytes.Buffer
	err := safetensors.Write(&b, metadata, tensors)
	return b.Bytes(), err
}

// TestWriteGolden: what is written is fixed, byte for byte, for digests depend on
// it.
func TestWriteGolden(t *testing.T) {
	tensors := []safetensors.WriteTensor{
		tensorOf("b", safetensors.U8, "xyz", 3),
		tensorOf("a<é\"", safetensors.U8, "w"),
		tensorOf("wide", safetensors.F64, "01234567", 1, 1),
		tensorOf("half", safetensors.F16, "", 0, 5),
		tensorOf("small", safetensors.F4, "4", 2),
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
		var tensors []safetensors.WriteTensor
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
	dtypes := []safetensors.DType{
		"BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ",
		"I16", "U16", "F16", "BF16", "I32", "U32", "F32", "C64", "F64", "I64", "U64",
	}
	var tensors []safetensors.WriteTensor
	for _, d := range dtypes {
		tensors = append(tensors, tensorOf(string(d), d, strings.Repeat("x", d.Bits()), 2, 4))
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
		bits := x.DType.Bits()
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
	u8 := func(name string) safetensors.WriteTensor { return tensorOf(name, safetensors.U8, "x", 1) }
	for _, c := range []struct {
		name     string
		metadata map[string]string
		tensors  []safetensors.WriteTensor
		want     string
	}{
		{"name twice", nil, []safetensors.WriteTensor{u8("a"), u8("b"), u8("a")}, `"a" occurs twice`},
		{"metadata's name", nil, []safetensors.WriteTensor{u8("__metadata__")}, "no tensor can have this name"},
		{"name is not UTF-8", nil, []safetensors.WriteTensor{u8("a\xff")}, "not UTF-8"},
		{"metadata is not UTF-8", map[string]string{"k": "\xff"}, nil, "not UTF-8"},
		{"unknown type", nil, []safetensors.WriteTensor{tensorOf("a", "F128", "")}, `got "F128"`},
		{"draft's type", nil, []safetensors.WriteTensor{tensorOf("a", "float16", "")}, `got "float16"`},
		{"negative dimension", nil, []safetensors.WriteTensor{tensorOf("a", "U8", "", -1)}, "has the shape [-1]"},
		{"half a byte", nil, []safetensors.WriteTensor{tensorOf("a", "F4", "", 3)}, "whole bytes"},
		{"shape overflows", nil, []safetensors.WriteTensor{tensorOf("a", "U8", "", 1<<40, 1<<40)}, "too large"},
		{"sum overflows", nil, []safetensors.WriteTensor{tensorOf("a", "U8", "", 1<<60), tensorOf("b", "U8", "", 1)}, "too large"},
		{"too many dimensions", nil, []safetensors.WriteTensor{tensorOf("a", "U8", "", make([]int64, 65)...)}, "more than 64"},
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

func TestWriteFails(t *testing.T) {
	broken := errors.New("disk on fire")
	source := func(r io.Reader, err error) safetensors.WriteTensor {
		return safetensors.WriteTensor{Name: "a", DType: safetensors.U8, Shape: []int64{3}, Open: func() (io.Reader, error) { return r, err }}
	}
	for name, c := range map[string]struct {
		tensor safetensors.WriteTensor
		kind   error
		want   string
	}{
		"too few bytes":   {source(strings.NewReader("xy"), nil), io.ErrUnexpectedEOF, "got 2 bytes"},
		"too many bytes":  {source(strings.NewReader("wxyz"), nil), safetensors.ErrFormat, "more than the 3 bytes"},
		"can't be opened": {source(nil, broken), broken, "tensor"},
		"can't be read":   {source(iotest.ErrReader(broken), nil), broken, "tensor"},
		"breaks at last":  {source(io.MultiReader(strings.NewReader("xyz"), iotest.ErrReader(broken)), nil), broken, "tensor"},
		"can't be closed": {source(closing{strings.NewReader("xyz"), broken}, nil), broken, "tensor"},
	} {
		_, err := write(nil, c.tensor)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %v with %q", name, err, c.kind, c.want)
		}
	}
	for _, n := range []int64{0, 20, 65} {
		if err := safetensors.Write(&full{n}, nil, []safetensors.WriteTensor{tensorOf("a", "U8", "xyz", 3)}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("a disk of %d bytes: got %v", n, err)
		}
	}
}

type closing struct {
	io.Reader
	err error
}

func (c closing) Close() error { return c.err }

// full is a disk with room for so many bytes.
type full struct{ left int64 }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= int64(len(p)); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
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
	f.Fuzz(func(t *testing.T, name, dtype string, d0, d1 int64, key, value string) {
		if d0 > 100 || d1 > 100 {
			return
		}
		data := bytes.Repeat([]byte{1}, max(0, int(d0*d1))*safetensors.DType(dtype).Bits()/8)
		b, err := write(map[string]string{key: value}, tensorOf(name, safetensors.DType(dtype), string(data), d0, d1))
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
		want := safetensors.Tensor{Name: name, DType: safetensors.DType(dtype), Shape: []int64{d0, d1}, End: int64(len(data))}
		if diff := cmp.Diff([]safetensors.Tensor{want}, h.Tensors); diff != "" || h.Metadata[key] != value || h.DataStart%8 != 0 {
			t.Fatalf("%s, metadata %q", diff, h.Metadata)
		}
	})
}

// The header alone is what Write begins with.
func TestWriteHeader(t *testing.T) {
	tensors := []safetensors.WriteTensor{tensorOf("b", safetensors.U8, "abc", 3), tensorOf("a", safetensors.U8, "de", 2)}
	var whole, head bytes.Buffer
	if err := safetensors.Write(&whole, map[string]string{"k": "v"}, tensors); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.WriteHeader(&head, map[string]string{"k": "v"}, tensors); err != nil {
		t.Fatal(err)
	}
	if got, want := head.String()+"deabc", whole.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := safetensors.WriteHeader(&head, nil, []safetensors.WriteTensor{{Name: "a", DType: "none"}}); err == nil {
		t.Error("an unknown type: got no error")
	}
}
