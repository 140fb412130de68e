package carton

import (
	"encoding/json"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/tomltext"
)

// DType is the type of a tensor's elements.
type DType string

// The types that the format knows. Nested is for entries of
// tensor_data/index.toml only.
const (
	Float32 DType = "float32"
	Float64 DType = "float64"
	String  DType = "string"
	Int8    DType = "int8"
	Int16   DType = "int16"
	Int32   DType = "int32"
	Int64   DType = "int64"
	Uint8   DType = "uint8"
	Uint16  DType = "uint16"
	Uint32  DType = "uint32"
	Uint64  DType = "uint64"
	Nested  DType = "nested"
)

// Size returns the length of one element in bytes, 0 for String and Nested, and
// for a type that the format does not know.
func (d DType) Size() int64 {
	t := dtype.Find(func(t *dtype.Type) bool { return t.Carton != "" && t.Carton == string(d) })
	if t == nil {
		return 0
	}
	return t.Bytes()
}

// Shape is the shape of a declared tensor: one symbol for all of it ("*" for
// any shape), or a list of dimensions, empty for a scalar.
type Shape struct {
	Symbol string // "" where Dims says the shape
	Dims   []Dim
}

// Dim is one dimension: a symbol ("*" for any length), or a length.
type Dim struct {
	Symbol string // "" where Size says the length
	Size   int64
}

// MarshalJSON implements json.Marshaler: a shape is what it is in carton.toml.
func (s Shape) MarshalJSON() ([]byte, error) { return json.Marshal(s.value()) }

// String returns the shape as carton.toml has it, on one line.
func (s Shape) String() string {
	text, _ := tomltext.Value(s.value())
	return text
}

// value is the shape as TOML's types have it.
func (s Shape) value() any {
	if s.Symbol != "" {
		return s.Symbol
	}
	dims := make([]any, len(s.Dims))
	for i, d := range s.Dims {
		if dims[i] = d.Size; d.Symbol != "" {
			dims[i] = d.Symbol
		}
	}
	return dims
}

// dtype reads the key dtype.
func (t tomlTable) dtype() DType {
	d := DType(t.needText("dtype"))
	if d != "" && d != String && d != Nested && d.Size() == 0 {
		t.errorf("dtype", "is %s, and should be float32, float64, string, int8 to int64 or uint8 to uint64",
			quoteShort(string(d)))
		return ""
	}
	return d
}

// shape reads the key shape of an input or output.
func (t tomlTable) shape() Shape {
	switch v := t.values["shape"].(type) {
	case nil:
		t.errorf("shape", "is missing")
		return Shape{}
	case string:
		if v == "" {
			t.errorf("shape", "is an empty symbol")
		}
		return Shape{Symbol: v}
	}
	values, _ := t.array("shape")
	s := Shape{Dims: []Dim{}}
	var fixed []int64
	for i, v := range values {
		switch v := v.(type) {
		case string:
			if v == "" {
				t.errorf("shape", "dimension %d is an empty symbol", i+1)
			}
			s.Dims = append(s.Dims, Dim{Symbol: v})
		case int64:
			if v < 0 {
				t.errorf("shape", "dimension %d: is %d, and should be 0 or more", i+1, v)
				continue
			}
			s.Dims = append(s.Dims, Dim{Size: v})
			fixed = append(fixed, v)
		default:
			t.errorf("shape", "dimension %d: is %s, and should be an integer or a symbol", i+1, describe(v))
		}
	}
	if _, ok := dtype.Size(fixed, 8); !ok {
		t.errorf("shape", "%s has more than 2^63-1 bytes", s)
	}
	return s
}

// warnSymbols finds symbols of outputs that no input gives a value: nothing
// says what they should be.
func warnSymbols(info *Info, f *faults) {
	if len(info.Inputs) == 0 {
		return
	}
	declared := map[string]bool{"*": true, "": true}
	for _, in := range info.Inputs {
		declared[in.Shape.Symbol] = true
		for _, d := range in.Shape.Dims {
			declared[d.Symbol] = true
		}
	}
	for _, out := range info.Outputs {
		for _, d := range append([]Dim{{Symbol: out.Shape.Symbol}}, out.Shape.Dims...) {
			if !declared[d.Symbol] {
				f.warnf("output %s: its shape has the symbol %s, which no input has", quoteShort(out.Name),
					quoteShort(d.Symbol))
				declared[d.Symbol] = true
			}
		}
	}
}
