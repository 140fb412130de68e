package pt2

import (
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// knownSchema is the newest major version of torch/_export/serde/schema.py that
// this package was written for.
const knownSchema = 8

// program is what is read of a model definition: ExportedProgram.
type program struct {
	torch        string
	major, minor int64

	files *zipFiles // counts what is kept

	args   [2][]argument // of the graph: inputs, outputs
	specs  [2][]spec     // of the signature: inputs, outputs
	values map[string]*meta
}

// argument is a graph's or a signature's reference to a value.
type argument struct {
	kind string // "tensor", …; see [Value]
	name string // of the value, "" where it is none
}

// spec is an InputSpec or OutputSpec.
type spec struct {
	kind       string // "user_input", "parameter", …
	arg        argument
	target     string // the parameter's, buffer's or constant's name
	transient  bool   // a buffer that the weights do not hold
	isConstant bool   // constant_input
}

// definition reads a model's definition: what goes in and comes out.
func (o *opener) definition(m *Model, file string) error {
	p, err := o.program(file)
	if err != nil {
		return err
	}
	o.describe(m, p)
	return nil
}

// describe fills in what the definition says of a model.
func (o *opener) describe(m *Model, p *program) {
	m.TorchVersion = p.torch
	if p.major != 0 || p.minor != 0 {
		m.Schema = fmt.Sprintf("%d.%d", p.major, p.minor)
	}
	if p.major > knownSchema {
		o.find("model %s has a definition of schema %s, newer than %d, which is known",
			quote(m.Name), m.Schema, knownSchema)
	}
	o.targets[m.Name] = p.targets()
	for i, to := range []*[]Value{&m.Inputs, &m.Outputs} {
		for _, s := range p.specs[i] {
			if s.kind == "user_input" || s.kind == "user_output" || s.kind == "loss_output" || s.isConstant {
				*to = append(*to, p.value(s.arg))
			}
		}
	}
}

// targets returns the names of the weights and constants that are inputs of the
// graph.
func (p *program) targets() []string {
	var names []string
	for _, s := range p.specs[0] {
		if s.target != "" {
			names = append(names, s.target)
		}
	}
	return names
}

// value returns what is known of an argument.
func (p *program) value(a argument) Value {
	v := Value{Name: a.name, Kind: a.kind}
	if m := p.values[a.name]; a.kind == "tensor" && m != nil {
		v.DType, v.Shape = m.dtype, m.sizes
	}
	return v
}

func (o *opener) program(file string) (*program, error) {
	p := &program{files: o.files, values: map[string]*meta{}}
	return p, o.files.document(file, func(r *jsonstream.Reader) error {
		return readFields(r, map[string]func() error{
			"graph_module":   func() error { return p.module(r) },
			"torch_version":  into(&p.torch, r.String),
			"schema_version": func() error { return p.schema(r) },
		})
	})
}

// readFields reads an object: the fields that are known, and past all others.
func readFields(r *jsonstream.Reader, known map[string]func() error) error {
	return r.Object(func(key string) error {
		read := known[key]
		if read == nil {
			return r.Skip()
		}
		return within(key, read())
	})
}

// into reads a field's value.
func into[T any](to *T, read func() (T, error)) func() error {
	return func() (err error) {
		*to, err = read()
		return err
	}
}

// within says where in a document an error is.
func within(key string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", quote(key), err)
	}
	return nil
}

func (p *program) schema(r *jsonstream.Reader) error {
	if c, err := r.Peek(); err != nil || c != '{' { // a number in early versions
		if err == nil {
			p.major, err = r.Natural()
		}
		return err
	}
	return readFields(r, map[string]func() error{
		"major": into(&p.major, r.Natural),
		"minor": into(&p.minor, r.Natural),
	})
}

func (p *program) module(r *jsonstream.Reader) error {
	specs := func(i int) func() error {
		return into(&p.specs[i], func() ([]spec, error) { return p.readSpecs(r) })
	}
	return readFields(r, map[string]func() error{
		"graph": func() error { return p.graph(r) },
		"signature": func() error {
			return readFields(r, map[string]func() error{"input_specs": specs(0), "output_specs": specs(1)})
		},
	})
}

// graph reads the values that are the graph's inputs and outputs. torch writes
// inputs and outputs first; where something else does not, all values are kept.
func (p *program) graph(r *jsonstream.Reader) error {
	seen := 0
	arguments := func(i int) func() error {
		return func() (err error) {
			seen++
			p.args[i], err = p.arguments(r)
			return err
		}
	}
	return readFields(r, map[string]func() error{
		"inputs": arguments(0), "outputs": arguments(1),
		"tensor_values": func() error {
			var wanted map[string]bool
			if seen == 2 {
				wanted = p.names()
			}
			return p.tensorValues(r, wanted)
		},
	})
}

// names returns the names of the graph's inputs and outputs.
func (p *program) names() map[string]bool {
	names := map[string]bool{}
	for _, args := range p.args {
		for _, a := range args {
			names[a.name] = true
		}
	}
	return names
}

func (p *program) tensorValues(r *jsonstream.Reader, wanted map[string]bool) error {
	return r.Object(func(name string) error {
		if wanted != nil && !wanted[name] {
			return r.Skip()
		}
		if len(p.values) == MaxTensors {
			return errtext.Limit(ErrFormat, "more than %d values", MaxTensors)
		}
		m, err := readMeta(r)
		if err == nil && m == nil {
			err = errors.New("is null")
		}
		if err != nil {
			return within(name, err)
		}
		m.strides = nil // not wanted
		p.values[name] = m
		symbols := make([]string, len(m.sizes))
		for i, d := range m.sizes {
			symbols[i] = d.Symbol
		}
		return p.files.keep(len(m.sizes), append(symbols, name)...)
	})
}

func (p *program) arguments(r *jsonstream.Reader) ([]argument, error) {
	var args []argument
	err := r.Array(func() error {
		if len(args) == MaxTensors {
			return errtext.Limit(ErrFormat, "more than %d values", MaxTensors)
		}
		a, err := readArgument(r)
		args = append(args, a)
		if err == nil {
			err = p.files.keep(0, a.name)
		}
		return err
	})
	return args, err
}

// argumentKinds are the members of the union Argument that a signature can have.
var argumentKinds = map[string]string{
	"as_none": "none", "as_tensor": "tensor", "as_int": "int", "as_float": "float", "as_string": "string",
	"as_bool": "bool", "as_sym_int": "int", "as_sym_bool": "bool", "as_sym_float": "float", "as_custom_obj": "object",
}

// readArgument reads an Argument: {"as_tensor": {"name": "x"}}, {"as_int": 3}, ….
func readArgument(r *jsonstream.Reader) (a argument, err error) {
	err = r.Object(func(key string) error {
		if a.kind != "" {
			return errors.New("is two arguments in one")
		}
		if a.kind = argumentKinds[key]; a.kind == "" {
			a.kind = "other"
		}
		if c, err := r.Peek(); err != nil || c != '{' {
			if err == nil {
				err = r.Skip()
			}
			return err
		}
		return r.Object(func(key string) (err error) {
			if key != "name" && key != "as_name" {
				return r.Skip()
			}
			a.name, err = r.String()
			return within(key, err)
		})
	})
	if err == nil && a.kind == "" {
		err = errors.New("is an argument of no kind")
	}
	return a, err
}

func (p *program) readSpecs(r *jsonstream.Reader) ([]spec, error) {
	var specs []spec
	err := r.Array(func() error {
		if len(specs) == MaxTensors {
			return errtext.Limit(ErrFormat, "more than %d values", MaxTensors)
		}
		s, err := readSpec(r)
		specs = append(specs, s)
		if err == nil {
			err = p.files.keep(0, s.kind, s.arg.name, s.target)
		}
		return err
	})
	return specs, err
}

// readSpec reads an InputSpec or OutputSpec: {"parameter": {"arg": …,
// "parameter_name": …}}, {"user_input": {"arg": …}}, ….
func readSpec(r *jsonstream.Reader) (s spec, err error) {
	err = r.Object(func(kind string) error {
		if s.kind != "" {
			return errors.New("is two specs in one")
		}
		s.kind = kind
		s.isConstant = kind == "constant_input"
		user := kind == "user_input" || kind == "user_output"
		target := into(&s.target, r.String)
		err := readFields(r, map[string]func() error{
			"arg": into(&s.arg, func() (argument, error) {
				if user {
					return readArgument(r)
				}
				return readName(r)
			}),
			"name": into(&s.arg.name, r.String),
			"value": func() error {
				value, err := readArgument(r)
				s.arg.kind = value.kind
				return err
			},
			"parameter_name": target, "buffer_name": target, "tensor_constant_name": target, "custom_obj_name": target,
			"persistent": func() error {
				persistent, err := r.Bool()
				s.transient = !persistent
				return err
			},
		})
		return within(kind, err)
	})
	if err == nil && s.kind == "" {
		err = errors.New("is a spec of no kind")
	}
	return s, err
}

// readName reads a TensorArgument: {"name": "x"}.
func readName(r *jsonstream.Reader) (argument, error) {
	a := argument{kind: "tensor"}
	err := readFields(r, map[string]func() error{"name": into(&a.name, r.String)})
	return a, err
}
