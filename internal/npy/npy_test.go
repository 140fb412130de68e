package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/dtype"
)

// What numpy 1.24 writes for numpy.save of a float32 array of this shape.
var ofNumpy = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }" +
	strings.Repeat(" ", 58) + "\n"

func TestWhatIsWrittenIsNumpysOwn(t *testing.T) {
	var b bytes.Buffer
	if err := WriteHeader(&b, "F32", []int64{3, 2}); err != nil {
		t.Fatal(err)
	}
	if b.String() != ofNumpy {
		t.Errorf("got\n%q, want\n%q", b.String(), ofNumpy)
	}
}

func TestEveryTypeComesBack(t *testing.T) {
	long := slices.Repeat([]int64{1_234_567_890}, MaxDims)
	long[0] = 0
	for _, typ := range dtype.Types {
		if !HasType(typ.Name) {
			continue
		}
		for _, shape := range [][]int64{{}, {0}, {7}, {3, 2}, {1, 0, 5}} {
			var b bytes.Buffer
			if err := WriteHeader(&b, typ.Name, shape); err != nil {
				t.Fatal(err)
			}
			if b.Len()%align != 0 {
				t.Errorf("%s %v: the elements begin at %d", typ.Name, shape, b.Len())
			}
			h, err := ReadHeader(&b)
			if err != nil {
				t.Fatalf("%s %v: %v", typ.Name, shape, err)
			}
			if h.DType != typ.Name || !slices.Equal(h.Shape, shape) || h.Fortran || h.BigEndian || h.DataStart%align != 0 {
				t.Errorf("%s %v: got %+v", typ.Name, shape, h)
			}
			want := typ.Bytes()
			for _, d := range shape {
				want *= d
			}
			if h.Bytes() != want {
				t.Errorf("%s %v: got %d bytes, want %d", typ.Name, shape, h.Bytes(), want)
			}
		}
	}
	if err := WriteHeader(io.Discard, "F32", long); err != nil {
		t.Errorf("%d dimensions: %v", len(long), err)
	}
	if err := WriteHeader(io.Discard, "F32", append(long, 1)); !errors.Is(err, ErrFormat) {
		t.Errorf("%d dimensions: got %v, want ErrFormat", len(long)+1, err)
	}
	for _, dtype := range []string{"BF16", "F8_E4M3", "F4", "string", ""} {
		if err := WriteHeader(io.Discard, dtype, nil); !errors.Is(err, ErrType) || HasType(dtype) {
			t.Errorf("%q: got %v, want ErrType", dtype, err)
		}
	}
}

// file returns a file with this dictionary.
func file(version byte, dict string) []byte {
	b := append([]byte(magic), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(dict)))
	}
	return append(b, dict...)
}

func TestWhatIsRead(t *testing.T) {
	for dict, want := range map[string]Header{
		"{'descr': '>f8', 'fortran_order': True, 'shape': (2,), }\n":   {DType: "F64", Shape: []int64{2}, Fortran: true, BigEndian: true},
		`{"shape":(),"descr":"|u1","fortran_order":False}`:             {DType: "U8", Shape: []int64{}},
		"{'descr': '>b1', 'fortran_order': False, 'shape': (4L, 3L)}":  {DType: "BOOL", Shape: []int64{4, 3}},
		"{'descr': '<c16', 'fortran_order': False, 'shape': (0, 3,)} ": {DType: "C128", Shape: []int64{0, 3}},
	} {
		for _, version := range []byte{1, 2, 3} {
			b := file(version, dict)
			r := bytes.NewReader(append(b, "rest"...))
			h, err := ReadHeader(iotest.OneByteReader(r))
			if err != nil {
				t.Errorf("%s: %v", dict, err)
				continue
			}
			if h.DType != want.DType || !slices.Equal(h.Shape, want.Shape) || h.Fortran != want.Fortran || h.BigEndian != want.BigEndian {
				t.Errorf("%s: got %+v, want %+v", dict, *h, want)
			}
			if rest, _ := io.ReadAll(r); string(rest) != "rest" || h.DataStart != int64(len(b)) {
				t.Errorf("%s: the elements begin at %d with %q", dict, h.DataStart, rest)
			}
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	for dict, want := range map[string]string{
		"":   "{ belongs",
		"{}": "lacks one of the keys",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}":                                "must be a tuple",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}":                              "a length belongs",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}":             "a length belongs",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296)}":            "too large",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1,", 65) + ")}": "more than 64 dimensions",
		"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}":                                     "False belongs",
		"{'descr': '<f4', 'descr': '<f4', 'shape': ()}":                                         "occurs twice",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}":                         `the key "x"`,
		"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x":                               "follows its end",
		"{'descr': '<f4', 'fortran_order': False, 'shape': ()":                                  "} belongs",
		`{'desc\'r': '<f4'}`: "a string belongs",
		"{'descr: '<f4'}":    ": belongs",
		"{descr: '<f4'}":     "a string belongs",
	} {
		if _, err := ReadHeader(bytes.NewReader(file(1, dict))); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrFormat with %q", dict, err, want)
		}
	}
	for _, descr := range []string{"'|O'", "'<U5'", "'f4'", "''", "'=f4'", "'<f3'", "[('a', '<f4')]", "'|f4'"} {
		dict := "{'descr': " + descr + ", 'fortran_order': False, 'shape': ()}"
		if _, err := ReadHeader(bytes.NewReader(file(1, dict))); !errors.Is(err, ErrType) {
			t.Errorf("%s: got %v, want ErrType", dict, err)
		}
	}
	for name, b := range map[string][]byte{
		"another magic": []byte("PK\x03\x04....."), "version 4": append([]byte(magic), 4, 0, 0, 0),
		"a long header": append([]byte(magic), 2, 0, 1, 0, 1, 0),
	} {
		if _, err := ReadHeader(bytes.NewReader(b)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
	for i := range len(ofNumpy) {
		if _, err := ReadHeader(strings.NewReader(ofNumpy[:i])); !errors.Is(err, ErrFormat) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut to %d bytes: got %v", i, err)
		}
	}
	broken := errors.New("broken")
	if _, err := ReadHeader(iotest.ErrReader(broken)); !errors.Is(err, broken) || errors.Is(err, ErrFormat) {
		t.Errorf("a reader that fails: got %v", err)
	}
}

// FuzzReadHeader: nothing crashes it, and what it accepts can be written again
// and says the same.
func FuzzReadHeader(f *testing.F) {
	f.Add([]byte(ofNumpy))
	f.Add(file(2, "{'descr': '>i8', 'fortran_order': True, 'shape': (2, 3L,), }\n"))
	f.Add(file(3, `{"shape":(),"descr":"|b1","fortran_order":False}`))
	f.Add(file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHeader(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrType) {
				t.Fatalf("got %v, which is of no kind", err)
			}
			return
		}
		var again bytes.Buffer
		if err := WriteHeader(&again, h.DType, h.Shape); err != nil {
			t.Fatal(err)
		}
		other, err := ReadHeader(&again)
		if err != nil || other.DType != h.DType || !slices.Equal(other.Shape, h.Shape) || other.Bytes() != h.Bytes() || h.Bytes() < 0 {
			t.Fatalf("got %+v, %v, want %+v", other, err, h)
		}
	})
}
