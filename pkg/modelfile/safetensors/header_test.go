package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// file returns a file with this JSON and as many zero bytes of data.
func file(json string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(json)))
	return append(append(b, json...), make([]byte, data)...)
}

func open(b []byte) (*safetensors.Header, error) {
	return safetensors.ReadHeader(bytes.NewReader(b), int64(len(b)))
}

// elements returns how many elements a file's tensors have.
func elements(h *safetensors.Header) int64 {
	all := int64(0)
	for _, t := range h.Tensors {
		n := int64(1)
		for _, d := range t.Shape {
			n *= d
		}
		all += n
	}
	return all
}

func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		name             string
		tensors          int
		elements         int64
		first            safetensors.Tensor
		dtypes, metadata string
	}{
		{
			"mnist", 20, 376_940,
			safetensors.Tensor{Name: "norm1.num_batches_tracked", DType: "I64", Shape: []int64{}, Begin: 0, End: 8},
			"I64 F32", "",
		},
		{
			"dtypes", 10, 60,
			safetensors.Tensor{Name: "tensor1.int64", DType: "I64", Shape: []int64{3, 2}, Begin: 0, End: 48},
			"I64 F64 F32 I32 BF16 F16 I16 I8 U8 BOOL", "pt",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := os.Open(testenv.Foreign(t, "safetensors/"+c.name+".safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			st, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			h, err := safetensors.ReadHeader(f, st.Size())
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Tensors) != c.tensors || elements(h) != c.elements || h.Size() != st.Size() || h.Draft {
				t.Errorf("got %d tensors of %d elements, size %d, draft %v", len(h.Tensors), elements(h), h.Size(), h.Draft)
			}
			if diff := cmp.Diff(c.first, h.Tensors[0]); diff != "" {
				t.Error(diff)
			}
			var dtypes []string
			for _, tensor := range h.Tensors {
				if d := tensor.DType; len(dtypes) == 0 || dtypes[len(dtypes)-1] != d {
					dtypes = append(dtypes, d)
				}
			}
			if got := strings.Join(dtypes, " "); got != c.dtypes {
				t.Errorf("got types %s, want %s", got, c.dtypes)
			}
			if h.Metadata["format"] != c.metadata {
				t.Errorf("got metadata %v", h.Metadata)
			}
		})
	}
}

func TestEveryType(t *testing.T) {
	for dtype, size := range map[string]int{ // bytes of eight elements
		"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8,
		"F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
		"I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
		"C64": 64, "F64": 64, "I64": 64, "U64": 64,
	} {
		h, err := open(file(`{"a":{"dtype":"`+dtype+`","shape":[2,4],"data_offsets":[0,`+itoa(size)+`]}}`, size))
		if err != nil {
			t.Errorf("%s: %v", dtype, err)
			continue
		}
		if elements(h) != 8 || h.Tensors[0].DType != dtype {
			t.Errorf("%s: got %+v", dtype, h.Tensors[0])
		}
	}
}

func TestGoodHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		json string
		data int
		want []string // names in order
	}{
		"no tensors":            {`{}`, 0, nil},
		"padding on both sides": {"\n {} \t\r\n ", 0, nil},
		"metadata alone":        {`{"__metadata__":{}}`, 0, nil},
		"scalar":                {`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1, []string{"a"}},
		"empty dimension":       {`{"a":{"dtype":"F32","shape":[3,0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2, []string{"a", "b"}},
		"huge behind a zero":    {`{"a":{"dtype":"F32","shape":[0,1099511627776,1099511627776],"data_offsets":[0,0]}}`, 0, []string{"a"}},
		"2^63 before a zero":    {`{"a":{"dtype":"U8","shape":[4294967296,2147483648,0],"data_offsets":[0,0]}}`, 0, []string{"a"}},
		"any order of keys":     {`{"b":{"data_offsets":[1,2],"shape":[1],"dtype":"U8"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 2, []string{"a", "b"}},
		"unknown keys":          {`{"a":{"x":[{"y":[1.5e3,null,"]"]}],"dtype":"U8","shape":[1],"data_offsets":[0,1],"z":true}}`, 1, []string{"a"}},
		"escapes":               {`{"a\u00e9\"\\":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, []string{`aé"\`}},
		"replacement character": {`{"\ufffd�":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, []string{"��"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := open(file(c.json, c.data))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tensor := range h.Tensors {
				got = append(got, tensor.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDraftForm(t *testing.T) {
	h, err := open(file(`{"a":{"dtype":"float16","shape":[1,16,256],"offsets":[0,8192]}}`, 8192))
	if err != nil {
		t.Fatal(err)
	}
	if !h.Draft || h.Tensors[0].DType != "F16" || elements(h) != 4096 {
		t.Errorf("got %+v", h)
	}
}

func TestBadHeaders(t *testing.T) {
	one := func(rest string) string { return `{"a":{"dtype":"U8","shape":[1],` + rest + `}}` }
	for _, c := range []struct {
		name, json string
		data       int
		want       string // in the error's text
	}{
		{"no JSON", ``, 0, "EOF"},
		{"array", `[]`, 0, `got '['`},
		{"cut", `{"a":{"dtype":"U8"`, 0, "EOF"},
		{"trailing text", `{}x`, 0, "want the end"},
		{"second object", `{}{}`, 0, "want the end"},
		{"trailing comma", `{"__metadata__":{},}`, 0, `want '"'`},
		{"no colon", `{"a"{}}`, 0, `want ':'`},
		{"not UTF-8", "{\"a\xff\":{}}", 0, "not UTF-8"},
		{"control character", "{\"a\n\":{}}", 0, "control character"},
		{"bad escape", `{"\x":{}}`, 0, "wrong escape"},
		{"lone surrogate", `{"\ud800":{}}`, 0, "wrong escape"},
		{"tensor twice", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2, `"a" occurs twice`},
		{"tensor twice by escape", `{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0, `"a" occurs twice`},
		{"metadata twice", `{"__metadata__":{},"__metadata__":{}}`, 0, "__metadata__ occurs twice"},
		{"metadata key twice", `{"__metadata__":{"k":"1","k":"2"}}`, 0, `"k" occurs twice`},
		{"metadata is no string", `{"__metadata__":{"k":1}}`, 0, `want '"'`},
		{"dtype twice", one(`"dtype":"U8","data_offsets":[0,1]`), 1, "dtype occurs twice"},
		{"shape twice", one(`"shape":[1],"data_offsets":[0,1]`), 1, "shape occurs twice"},
		{"offsets in both forms", one(`"offsets":[0,1],"data_offsets":[0,1]`), 1, "data_offsets occurs twice"},
		{"no offsets", `{"a":{"dtype":"U8","shape":[1]}}`, 1, "has no data_offsets"},
		{"no shape", `{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1, "has no shape"},
		{"no dtype", `{"a":{"shape":[1],"data_offsets":[0,1]}}`, 1, "has no dtype"},
		{"unknown dtype", `{"a":{"dtype":"u8","shape":[1],"data_offsets":[0,1]}}`, 1, `got "u8"`},
		{"three offsets", one(`"data_offsets":[0,1,2]`), 1, "more than 2"},
		{"one offset", one(`"data_offsets":[0]`), 1, "got 1 numbers"},
		{"negative offset", one(`"data_offsets":[-1,0]`), 1, `got "-1"`},
		{"fraction", one(`"data_offsets":[0,1.0]`), 1, `got "1.0"`},
		{"leading zero", one(`"data_offsets":[0,01]`), 1, `got "01"`},
		{"number over 2⁶³", one(`"data_offsets":[0,9223372036854775808]`), 1, "want a whole number"},
		{"endless number", one(`"data_offsets":[0,` + strings.Repeat("1", 100) + `]`), 1, "too long"},
		{"begin after end", one(`"data_offsets":[1,0]`), 1, "before it begins"},
		{"overlap", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3, "inside another"},
		{"same bytes", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 2, "inside another"},
		{"gap at the start", one(`"data_offsets":[1,2]`), 2, "1 bytes after"},
		{"gap", `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5, "1 bytes after"},
		{"file too short", one(`"data_offsets":[0,1]`), 0, "its header needs"},
		{"file too long", one(`"data_offsets":[0,1]`), 2, "its header needs"},
		{"span too long", one(`"data_offsets":[0,2]`), 2, "need 1"},
		{"half a byte", `{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}`, 1, "whole bytes"},
		{"shape overflows", `{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0, "too large"},
		{"shape overflows before a zero", `{"a":{"dtype":"F64","shape":[1099511627776,1099511627776,0],"data_offsets":[0,0]}}`, 0, "too large"},
		{"bytes overflow", `{"a":{"dtype":"F64","shape":[9223372036854775807],"data_offsets":[0,8]}}`, 8, "too large"},
		{"end that no file has", `{"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}}`, 8, "no file can reach"},
		{"too many dimensions", `{"a":{"dtype":"U8","shape":[` + strings.Repeat("1,", 64) + `1],"data_offsets":[0,1]}}`, 1, "more than 64"},
		{"deep nesting", one(`"x":` + strings.Repeat("[", 10_000)), 1, "nested deeper"},
		{"no JSON value", one(`"x":nul`), 1, `got "nul"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(file(c.json, c.data))
			if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a format error with %q", err, c.want)
			}
		})
	}
}

func TestLengths(t *testing.T) {
	length := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"empty", nil, "0 of 8 bytes"},
		{"seven bytes", make([]byte, 7), "7 of 8 bytes"},
		{"2⁶³", length(1 << 63), "allows 100000000"},
		{"over the limit", length(safetensors.MaxHeaderBytes + 1), "allows 100000000"},
		{"over the file", append(length(100), '{', '}'), "header of 100 bytes in a file of 10"},
	} {
		_, err := open(c.b)
		if !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	// A stream does not know its length: it simply ends.
	for _, b := range [][]byte{nil, length(100), append(length(3), '{', '}'), append(length(100), `{"a":{"dty`...)} {
		if _, err := safetensors.ReadHeader(bytes.NewReader(b), -1); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("stream of %d bytes: got %v", len(b), err)
		}
	}
}

// TestReadHeaderReadsThePrefix: of a remote file no more than some kB beyond
// the header may be asked for.
func TestReadHeaderReadsThePrefix(t *testing.T) {
	b := file(`{"a":{"dtype":"U8","shape":[1000000],"data_offsets":[0,1000000]}}`, 1_000_000)
	r := bytes.NewReader(b)
	h, err := safetensors.ReadHeader(r, -1)
	if err != nil || h.Size() != int64(len(b)) {
		t.Fatalf("got %+v, %v", h, err)
	}
	if read := len(b) - r.Len(); read > int(h.DataStart) {
		t.Errorf("read %d bytes of a header of %d", read, h.DataStart)
	}
}

// TestReadErrorIsNoFormatError: a broken connection says nothing of the file.
func TestReadErrorIsNoFormatError(t *testing.T) {
	b := file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1)
	for _, n := range []int{0, 5, 8, 30} {
		broken := errors.New("connection reset")
		_, err := safetensors.ReadHeader(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(broken)), -1)
		if !errors.Is(err, broken) || errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("after %d bytes: got %v", n, err)
		}
	}
}

func TestGitLFSPointer(t *testing.T) {
	b := []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")
	_, err := open(b)
	if !errors.Is(err, modelfile.ErrPointer) || len(hint.Of(err)) != 1 {
		t.Errorf("got %v with hints %q", err, hint.Of(err))
	}
	if _, err := open([]byte("version 2, something else entirely")); !errors.Is(err, safetensors.ErrFormat) {
		t.Errorf("got %v for a text file", err)
	}
}
