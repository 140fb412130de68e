package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/carton-oci/carton-oci/internal/modeltest"
)

// scriptSafetensors is mksafetensors: tensors are NAME:DTYPE:DIM,DIM…, no
// dimensions for a scalar. The elements' bytes are the alphabet, again and again.
func scriptSafetensors(ts *testscript.TestScript, _ bool, args []string) {
	sizes := map[string]int{"F32": 4, "I64": 8, "BF16": 2, "U8": 1}
	var parts []string
	size := 0
	for _, arg := range args[1:] {
		words := strings.Split(arg, ":")
		n := sizes[words[1]]
		for _, d := range strings.FieldsFunc(words[2], func(r rune) bool { return r == ',' }) {
			length, err := strconv.Atoi(d)
			ts.Check(err)
			n *= length
		}
		parts = append(parts, fmt.Sprintf(`%q:{"dtype":%q,"shape":[%s],"data_offsets":[%d,%d]}`, words[0], words[1], words[2], size, size+n))
		size += n
	}
	header := "{" + strings.Join(parts, ",") + "}"
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for i := range size {
		b = append(b, byte('a'+i%26))
	}
	writeInFolder(ts, args[0], b)
}

// writeInFolder writes a file, and makes the folder that it is in.
func writeInFolder(ts *testscript.TestScript, file string, b []byte) {
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(file)), 0o755))
	ts.Check(os.WriteFile(ts.MkAbs(file), b, 0o644))
}

// scriptPT2 is mkpt2: an archive of two models, a and b, that share a weight w,
// of which b has a turned view, and that have an own each.
func scriptPT2(ts *testscript.TestScript, _ bool, args []string) {
	weight := func(name string, storage int, shape, stride []int64) modeltest.Weight {
		return modeltest.Weight{Name: name, DType: modeltest.Float, Shape: shape, Stride: stride, Storage: storage, Param: true}
	}
	b := modeltest.PT2(ts.Value(scriptKey{}).(*scriptState).tb, modeltest.Archive{
		Storages: [][]byte{[]byte("aaaabbbbccccddddeeeeffff"), []byte("gggg"), []byte("hhhh")},
		Models: []modeltest.Model{
			{Name: "a", Weights: []modeltest.Weight{weight("w", 0, []int64{2, 3}, []int64{3, 1}), weight("own", 1, []int64{1}, []int64{1})}},
			{Name: "b", Weights: []modeltest.Weight{
				weight("w", 0, []int64{2, 3}, []int64{3, 1}), weight("turned", 0, []int64{3, 2}, []int64{1, 3}), weight("own", 2, []int64{1}, []int64{1}),
			}},
		},
	})
	writeInFolder(ts, args[0], b)
}

// scriptGGUF is mkgguf: FILE QUANTIZATION TENSORS [NUMBER OF ALL], a llama of so many
// tensors of 256 elements, Q4_K with 144 bytes of one letter each; with NUMBER and so
// on that part of a split model.
func scriptGGUF(ts *testscript.TestScript, _ bool, args []string) {
	number := func(i int) int {
		n, err := strconv.Atoi(args[i])
		ts.Check(err)
		return n
	}
	keys := []any{
		"general.architecture", "llama", "general.name", "Tiny Llama", "general.license", "apache-2.0", "general.file_type", uint32(number(1)),
		"llama.context_length", uint32(4096), "tokenizer.chat_template", "{{ messages }}", "general.url", "https://example.org/tiny",
	}
	first := 0
	if len(args) > 3 {
		if first = number(3) - 1; first > 0 {
			keys = nil
		}
		keys = append(keys, "split.no", uint16(first), "split.count", uint16(number(4)), "split.tensors.count", int32(number(5)))
	}
	var tensors []modeltest.GGUFTensor
	for i := range number(2) {
		name := fmt.Sprintf("blk.%d.%d.weight", first, i)
		tensors = append(tensors, modeltest.GGUFOf(name, 12, []uint64{256}, bytes.Repeat([]byte{byte('a' + i%26)}, 144)))
	}
	writeInFolder(ts, args[0], modeltest.GGUF(ts.Value(scriptKey{}).(*scriptState).tb, 32, keys, tensors...))
}

// scriptTail is tail: the last bytes of a file are TEXT.
func scriptTail(ts *testscript.TestScript, _ bool, args []string) {
	want := strings.ReplaceAll(args[1], `\n`, "\n")
	if b := ts.ReadFile(args[0]); !strings.HasSuffix(b, want) {
		ts.Fatalf("%s ends with %q", args[0], b[max(0, len(b)-2*len(want)):])
	}
}

func TestTensorForms(t *testing.T) {
	for file, want := range map[string]bool{"a.npy": true, "A.NPY": true, "a.safetensors": true, "a": false, "a.bin": true, "a.npz": false, "npy": false} {
		if _, err := tensorFormOf(file); (err == nil) != want {
			t.Errorf("%s: got %v", file, err)
		}
	}
}
