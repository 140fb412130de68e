package pt2

import (
	"fmt"
	"maps"
	"slices"
)

const (
	// oldModel is what the one model of an archive up to torch 2.7 is called, which has
	// no name, and oldDefinition the file of its definition.
	oldModel      = "model"
	oldDefinition = "serialized_exported_program.json"
)

// oldLayout reads what torch 2.7 and earlier wrote: the definition names the weights, and their
// bytes are one pickle.
func (o *opener) oldLayout() error {
	if !o.old {
		return o.pickledWeights()
	}
	m := o.model(oldModel)
	p, err := o.program(oldDefinition)
	if err != nil {
		return err
	}
	o.describe(m, p)
	return o.fromSignature(m, p, "serialized_state_dict.pt", "serialized_constants.pt")
}

// pickledWeights reads what the first releases with a root folder wrote: weights
// and constants of a model as one pickle each, without a config.
func (o *opener) pickledWeights() error {
	for _, name := range slices.Sorted(maps.Keys(o.models)) {
		m := o.models[name]
		weights, constants := weightsDir+name+".pt", constantsDir+name+".pt"
		if o.files.has(weightsDir+name+weightsConfig) || !o.files.has(weights) || !o.files.has(modelsDir+name+".json") {
			continue
		}
		if o.files.has(constantsDir + name + constantsConfig) {
			constants = ""
		}
		p, err := o.program(modelsDir + name + ".json")
		if err != nil {
			return err
		}
		if err := o.fromSignature(m, p, weights, constants); err != nil {
			return err
		}
	}
	return nil
}

// fromSignature lists the weights and constants that a signature names, and that
// lie pickled in these files.
func (o *opener) fromSignature(m *Model, p *program, weights, constants string) error {
	o.blobs[weights], o.blobs[constants] = true, true
	for _, s := range p.specs[0] {
		file := weights
		if s.kind == "tensor_constant" || s.kind == "custom_obj" || s.transient {
			file = constants
		}
		switch s.kind {
		case "parameter", "buffer", "tensor_constant", "custom_obj":
		default:
			continue
		}
		if file == "" {
			continue
		}
		o.found[[2]string{m.Name, s.target}] = true
		if s.kind == "custom_obj" {
			continue
		}
		t := Tensor{
			Name: s.target, File: file, Param: s.kind == "parameter", Pickled: true, why: "is pickled",
			Offset: -1, BigEndian: o.bigEndian,
		}
		if err := o.pickledView(&t, p.values[s.arg.name]); err != nil {
			return fmt.Errorf("%w: tensor %s: %w", ErrFormat, quote(t.Name), err)
		}
		if file == constants {
			m.Constants = append(m.Constants, t)
		} else {
			m.Weights = append(m.Weights, t)
		}
	}
	return nil
}

// pickledView fills in type and shape of a tensor whose storage is in a pickle.
// Its strides are those of a contiguous one.
func (o *opener) pickledView(t *Tensor, m *meta) error {
	if m == nil {
		return o.another(0)
	}
	if err := o.another(2 * len(m.sizes)); err != nil {
		return err
	}
	t.Shape = make([]int64, 0, len(m.sizes))
	for _, d := range m.sizes {
		if d.Symbol != "" {
			return fmt.Errorf("has the symbol %s in its shape", quote(d.Symbol))
		}
		t.Shape = append(t.Shape, d.Size)
	}
	if _, err := checkSize(t.Shape, 16); err != nil {
		return err
	}
	t.DType, t.Stride = m.dtype, contiguous(t.Shape)
	return nil
}

// contiguous returns the strides of C order.
func contiguous(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= max(1, shape[i]) // torch's rule for empty dimensions
		n = min(n, maxBytes)
	}
	return strides
}
