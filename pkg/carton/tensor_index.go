package carton

import (
	"context"

	"github.com/carton-oci/carton-oci/internal/dtype"
)

// TensorIndex is a tensor_data/index.toml.
type TensorIndex struct {
	Tensors []Tensor
	byName  map[string]int
	inner   map[string]bool // the names of parts of nested tensors
}

// Tensor is one tensor of tensor_data/.
type Tensor struct {
	Name  string
	DType DType
	// Shape has one length a dimension, none for a scalar; it is nil where DType
	// is Nested.
	Shape []int64
	// File is the path below tensor_data/; "" where DType is Nested. Numbers are
	// little-endian, contiguous, in C order; strings are a TOML file with one
	// array, data.
	File string
	// Inner names the tensors that a Nested one is made of.
	Inner []string
}

// Path returns the path of the tensor's file in the carton, "" where it has
// none.
func (t Tensor) Path() string {
	if t.File == "" {
		return ""
	}
	return tensorFolder + t.File
}

// Elements returns the product of the shape.
func (t Tensor) Elements() int64 {
	n, _ := dtype.Size(t.Shape, 1) // checked when it was read
	return n
}

const tensorFolder = "tensor_data/"

// Lookup returns the tensor of that name.
func (x *TensorIndex) Lookup(name string) (Tensor, bool) {
	i, ok := x.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return x.Tensors[i], true
}

func emptyTensorIndex() *TensorIndex { return &TensorIndex{byName: map[string]int{}} }

// readIndex returns the bytes of the index, nil where there is none because there
// are no tensors.
func readIndex(ctx context.Context, src Source) ([]byte, error) {
	if _, ok := src.Manifest().Lookup(IndexName); ok {
		return ReadMember(ctx, src, IndexName, MaxIndexBytes)
	}
	for _, e := range src.Manifest().Entries() {
		if len(e.Path) > len(tensorFolder) && e.Path[:len(tensorFolder)] == tensorFolder {
			return nil, errorf(ErrFormat, IndexName, "is missing, but there is %s", quotePath(e.Path))
		}
	}
	return nil, nil
}

// ParseTensorIndex parses the bytes of a tensor_data/index.toml and validates
// every tensor, and that nested ones are made of others that are not. Unknown
// tables and keys are ignored. The error, ErrFormat, ErrInsecurePath or
// ErrLimit, is the first that [Check] would find.
func ParseTensorIndex(b []byte) (*TensorIndex, error) {
	x, f := parseIndex(b)
	if err := f.first(); err != nil {
		return nil, err
	}
	return x, nil
}

// parseIndex reads as much of an index as can be read, and all that is wrong
// with it. The index is nil where it is no TOML.
func parseIndex(b []byte) (*TensorIndex, *faults) {
	f := &faults{path: IndexName}
	x := emptyTensorIndex()
	values, err := decodeTOML(IndexName, b, MaxIndexBytes, MaxTOMLItems)
	if err != nil {
		f.addErr(err)
		return nil, f
	}
	if _, ok := values["tensor"]; !ok {
		f.loaderf("holds no tensor and does not say so: it should hold tensor = []")
	}
	bare := 0 // tensors without inner
	for _, t := range (tomlTable{values: values, faults: f}).tables("tensor") {
		tensor := parseTensor(t)
		if _, twice := x.byName[tensor.Name]; twice && tensor.Name != "" {
			t.errorf("name", "%s occurs twice", quoteShort(tensor.Name))
		}
		if _, ok := t.values["inner"]; !ok {
			bare++
		}
		x.byName[tensor.Name] = len(x.Tensors)
		x.Tensors = append(x.Tensors, tensor)
	}
	if bare > 0 {
		f.loaderf("%d of %d tensors have no inner, which each should have: inner = []", bare, len(x.Tensors))
	}
	x.inner = map[string]bool{}
	for i, t := range x.Tensors {
		for _, name := range t.Inner {
			inner, ok := x.Lookup(name)
			twice := x.inner[name]
			x.inner[name] = true
			switch {
			case twice:
				f.loaderf("tensor %d: inner: %s is part of a nested tensor already, and can be part of one only", i+1,
					quoteShort(name))
			case !ok:
				f.errorf("tensor %d: inner: there is no tensor %s", i+1, quoteShort(name))
			case inner.DType == Nested:
				f.errorf("tensor %d: inner: %s is nested itself", i+1, quoteShort(name))
			}
		}
	}
	return x, f
}

func parseTensor(t tomlTable) Tensor {
	tensor := Tensor{Name: t.needText("name"), DType: t.dtype()}
	inner, ok := t.texts("inner")
	if tensor.DType == Nested {
		if !ok && t.values["inner"] == nil {
			t.errorf("inner", "is missing, and the tensor is nested")
		}
		tensor.Inner = inner
		return tensor
	}
	if len(inner) > 0 {
		t.errorf("inner", "names tensors, but the dtype is not nested")
	}
	tensor.Shape = t.lengths("shape")
	if _, ok := dtype.Size(tensor.Shape, max(1, tensor.DType.Size())); !ok {
		t.errorf("shape", "%v has more than 2^63-1 bytes", tensor.Shape)
		tensor.Shape = nil
	}
	tensor.File = t.needText("file")
	if tensor.File != "" {
		if err := CheckPath(tensor.Path()); err != nil {
			t.faults.add(SeverityError, ErrInsecurePath, "%sfile: %v", t.at, err)
			tensor.File = ""
		}
	}
	return tensor
}

// lengths reads an array of integers that are 0 or more; nil where it is none.
func (t tomlTable) lengths(key string) []int64 {
	values, ok := t.array(key)
	if !ok {
		if t.values[key] == nil {
			t.errorf(key, "is missing")
		}
		return nil
	}
	lengths := make([]int64, 0, len(values))
	for i, v := range values {
		n, isInt := v.(int64)
		if !isInt || n < 0 {
			t.errorf(key, "dimension %d: is %s, and should be an integer of 0 or more", i+1, describe(v))
			ok = false
		}
		lengths = append(lengths, n)
	}
	if !ok {
		return nil
	}
	return lengths
}

// countStrings parses the file of a string tensor and returns how many it has.
func countStrings(path string, b []byte) (int64, error) {
	values, err := decodeTOML(path, b, MaxStringTensorBytes, maxStrings)
	if err != nil {
		return 0, err
	}
	f := &faults{path: path}
	data, ok := (tomlTable{values: values, faults: f}).array("data")
	if !ok && f.first() == nil {
		return 0, errorf(ErrFormat, path, "data is missing")
	}
	for i, v := range data {
		if _, isText := v.(string); !isText {
			return 0, errorf(ErrFormat, path, "data: value %d: is %s, and should be a string", i+1, describe(v))
		}
	}
	return int64(len(data)), f.first()
}

// maxStrings is the most strings that are counted: an array costs a parser less
// than tables do.
const maxStrings = 4_000_000
