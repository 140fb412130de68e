package pack

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/tomltext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Test is a self test or an example: what goes into the model, and what should,
// or for instance does, come out.
type Test struct {
	Name, Description string
	// Inputs and Outputs say where each value is.
	Inputs, Outputs []TestValue
	// File takes the place of Inputs and Outputs: a .safetensors file whose tensors
	// are called input.NAME, and expected.NAME of a self test or output.NAME of an
	// example.
	File string
}

// TestValue is one input or output.
type TestValue struct {
	// Name is that of the model's input or output.
	Name string
	// From is a .npy file, a .safetensors file with one tensor, or a reference:
	// "@tensor_data/NAME" into Options.TensorData, or in an example "@misc/PATH".
	From string
}

// writtenTest is a test as carton.toml has it.
type writtenTest struct {
	carton.Test
	specs [2][]carton.TensorSpec
	whole bool // specs has all of inputs and outputs
}

// tensors puts what the tests bring into tensor_data/, with an index. A carton
// without tensors has an empty one: the reference loader wants it.
func (p *packer) tensors() error {
	if p.find(carton.IndexName) != nil {
		return p.tests(nil)
	}
	if p.given != nil {
		for _, f := range p.files {
			if strings.HasPrefix(f.path, tensorFolder) {
				return nil // carton.Check says what is missing
			}
		}
	}
	index := &indexWriter{}
	if err := p.tests(index); err != nil {
		return err
	}
	for i, t := range index.tensors {
		t.file.path = tensorFolder + index.fileOf(i)
		if err := p.paths.Add(t.file.path); err != nil {
			return err
		}
		p.files = append(p.files, t.file)
	}
	return p.add(carton.IndexName, index.bytes())
}

// tests adds what was given as self tests and examples to carton.toml's. index is
// nil where the tensors are given, and tests refer to them.
func (p *packer) tests(index *indexWriter) error {
	var written []writtenTest
	for _, list := range []struct {
		tests   []Test
		to      *[]carton.Test
		what    string
		outputs string
	}{
		{p.opts.AddSelfTests, &p.opts.SelfTests, "self_test", "expected"},
		{p.opts.AddExamples, &p.opts.Examples, "example", "output"},
	} {
		for i, t := range list.tests {
			r := testReader{packer: p, index: index, prefix: fmt.Sprintf("%s_%d.", list.what, i), outputs: list.outputs}
			w, err := r.read(t)
			if err != nil {
				return fmt.Errorf("%s %d: %w", list.what, i+1, err)
			}
			written = append(written, w)
			*list.to = append(slices.Clip(*list.to), w.Test)
		}
	}
	p.declareTested(written)
	return nil
}

// declareTested declares the inputs and outputs of tests, where nobody did. A
// dimension in which tests differ may have any length. That the outputs of a test
// without any are not declared is a warning of carton.Check.
func (p *packer) declareTested(tests []writtenTest) {
	if len(p.opts.Inputs)+len(p.opts.Outputs) > 0 || p.keepsInfo() {
		return
	}
	var specs [2][]carton.TensorSpec
	for _, t := range tests {
		if !t.whole {
			continue
		}
		for side := range specs {
			for _, s := range t.specs[side] {
				specs[side] = withSpec(specs[side], s)
			}
		}
	}
	p.declare(specs[0], specs[1], "the tensors of a test")
}

// withSpec adds a declaration to others, or to the one of its name: what they
// differ in is "*". Of two types the first counts, and carton.Check finds the other.
func withSpec(specs []carton.TensorSpec, s carton.TensorSpec) []carton.TensorSpec {
	for i := range specs {
		old := &specs[i].Shape
		if specs[i].Name != s.Name {
			continue
		}
		if len(old.Dims) != len(s.Shape.Dims) {
			*old = carton.Shape{Symbol: "*"}
		}
		for d := range old.Dims {
			if old.Dims[d] != s.Shape.Dims[d] {
				old.Dims[d] = carton.Dim{Symbol: "*"}
			}
		}
		return specs
	}
	s.Shape.Dims = slices.Clone(s.Shape.Dims)
	return append(specs, s)
}

// testReader reads one test.
type testReader struct {
	*packer
	index   *indexWriter
	prefix  string // of its tensors' names
	outputs string // what outputs are called in a file: expected or output
}

func (r *testReader) read(t Test) (writtenTest, error) {
	w := writtenTest{
		Test: carton.Test{
			Name: t.Name, Description: t.Description, Inputs: map[string]string{},
			Outputs: map[string]string{},
		},
		whole: true,
	}
	if t.File != "" {
		if err := r.readNamed(&w, t.File); err != nil {
			return w, err
		}
	}
	for _, v := range t.Inputs {
		if err := r.value(&w, v, true); err != nil {
			return w, err
		}
	}
	for _, v := range t.Outputs {
		if err := r.value(&w, v, false); err != nil {
			return w, err
		}
	}
	if len(w.Inputs) == 0 {
		return w, optionsf("got no inputs")
	}
	return w, nil
}

// readNamed adds the tensors of a file by their names: inputs first, as where
// they are written out.
func (r *testReader) readNamed(w *writtenTest, file string) error {
	tensors, err := r.openTensors(file)
	if err != nil {
		return err
	}
	for _, input := range []bool{true, false} {
		for _, d := range tensors {
			kind, name, _ := strings.Cut(d.name, ".")
			if name == "" || kind != "input" && kind != r.outputs {
				return optionsf("%s: got the tensor %s, want names like input.x and %s.y",
					errtext.Quote(file), errtext.Quote(d.name), r.outputs)
			}
			if input != (kind == "input") {
				continue
			}
			if err := r.put(w, name, input, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// value adds one value to a test.
func (r *testReader) value(w *writtenTest, v TestValue, input bool) error {
	if strings.HasPrefix(v.From, "@") {
		return r.refer(w, v, input)
	}
	tensors, err := r.openTensors(v.From)
	if err != nil {
		return err
	}
	if len(tensors) != 1 {
		return optionsf("%s holds %d tensors, want one: or give the file alone, with tensors called input.NAME",
			errtext.Quote(v.From), len(tensors))
	}
	return r.put(w, v.Name, input, tensors[0])
}

// side returns a test's inputs or outputs, which of its specs are theirs, and
// the word for them.
func (w *writtenTest) side(input bool) (refs map[string]string, specs *[]carton.TensorSpec, word string) {
	if input {
		return w.Inputs, &w.specs[0], "input"
	}
	return w.Outputs, &w.specs[1], "output"
}

// refer adds a reference to what is given with the carton.
func (r *testReader) refer(w *writtenTest, v TestValue, input bool) error {
	refs, specs, word := w.side(input)
	if _, twice := refs[v.Name]; twice {
		return optionsf("the %s %s is given twice", word, errtext.Quote(v.Name))
	}
	refs[v.Name] = v.From
	name, isTensor := strings.CutPrefix(v.From, "@tensor_data/")
	if isTensor && r.listed == nil {
		return optionsf("%s: there is no folder of tensors", errtext.Quote(v.From))
	}
	if isTensor {
		if t, ok := r.listed.Lookup(name); ok && t.DType != carton.Nested {
			*specs = append(*specs, specOf(v.Name, t.DType, t.Shape))
			return nil
		}
	}
	w.whole = false // and carton.Check says where the reference leads nowhere
	return nil
}

// put adds a tensor to a test and to the index.
func (r *testReader) put(w *writtenTest, name string, input bool, d dataTensor) error {
	refs, specs, word := w.side(input)
	if r.index == nil {
		return optionsf("got a folder of tensors and tensors of a test, want one of them, or references like " +
			"@tensor_data/NAME")
	}
	if _, twice := refs[name]; twice {
		return optionsf("the %s %s is given twice", word, errtext.Quote(name))
	}
	d.name = r.prefix + map[bool]string{true: "input", false: r.outputs}[input] + "." + name
	refs[name] = "@tensor_data/" + d.name
	*specs = append(*specs, specOf(name, d.dtype, d.shape))
	r.index.tensors = append(r.index.tensors, d)
	return nil
}

func specOf(name string, dtype carton.DType, shape []int64) carton.TensorSpec {
	s := carton.TensorSpec{Name: name, DType: dtype, Shape: carton.Shape{Dims: []carton.Dim{}}}
	for _, n := range shape {
		s.Shape.Dims = append(s.Shape.Dims, carton.Dim{Size: n})
	}
	return s
}

// indexWriter writes tensor_data/index.toml.
type indexWriter struct{ tensors []dataTensor }

// fileOf names a tensor's file: tensors' names may be no names of files.
func (x *indexWriter) fileOf(i int) string { return "tensor_" + strconv.Itoa(i) + ".bin" }

// bytes writes the index. The reference loader wants inner on every tensor.
func (x *indexWriter) bytes() []byte {
	if len(x.tensors) == 0 {
		return []byte("tensor = []\n")
	}
	var b strings.Builder
	for i, t := range x.tensors {
		if i > 0 {
			b.WriteString("\n")
		}
		shape := make([]string, len(t.shape))
		for d, n := range t.shape {
			shape[d] = strconv.FormatInt(n, 10)
		}
		fmt.Fprintf(&b, "[[tensor]]\nname = %s\ndtype = %s\nshape = [%s]\nfile = %s\ninner = []\n",
			tomltext.Quote(t.name), tomltext.Quote(string(t.dtype)), strings.Join(shape, ", "),
			tomltext.Quote(x.fileOf(i)))
	}
	return []byte(b.String())
}

// readIndex reads the index of tensors that are given.
func (p *packer) readIndex(root *os.Root) error {
	raw, err := readSmall(localfile.FS(root), "index.toml", carton.IndexName, carton.MaxIndexBytes)
	if errors.Is(err, os.ErrNotExist) {
		return &carton.Error{
			Path: carton.IndexName, Kind: carton.ErrFormat,
			Msg: "is missing: the folder of tensors has none",
		}
	}
	if err != nil {
		return err
	}
	if x, err := carton.ParseTensorIndex(raw); err == nil { // carton.Check says all that is wrong with it
		p.listed = x
	}
	return nil
}
