package pt2

import (
	"io"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// Format is this format for who looks into files of many.
var Format = modelfile.Format{Name: filekind.PT2, ReadArchive: readContent}

func readContent(r io.ReaderAt, size int64) (*modelfile.Content, error) {
	a, err := Open(r, size)
	if err != nil {
		return nil, err
	}
	c := &modelfile.Content{Findings: a.Findings}
	for i := range a.Models {
		m := &a.Models[i]
		model := modelfile.Model{Name: m.Name, Torch: m.TorchVersion, Tensors: len(m.Weights), Parameters: -1}
		weights := contentOf(m.Name, m.Weights, false)
		modelfile.Counted(weights, func(t *modelfile.Tensor) {
			model.Parameters = modelfile.Add(max(model.Parameters, 0), t.Elements())
		})
		c.Tensors = append(append(c.Tensors, weights...), contentOf(m.Name, m.Constants, true)...)
		for _, p := range m.AOTInductor {
			model.Backends = append(model.Backends, modelfile.Backend{Name: p.Backend, Device: p.Device})
			c.Tensors = append(c.Tensors, contentOf(p.Folder, p.Weights, false)...)
		}
		c.Models = append(c.Models, model)
	}
	return c, nil
}

// contentOf describes a model's tensors. None keeps others in memory.
func contentOf(model string, tensors []Tensor, constant bool) []modelfile.Tensor {
	out := make([]modelfile.Tensor, len(tensors))
	for i, t := range tensors {
		out[i] = modelfile.Tensor{
			Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes(), Model: model, Param: t.Param,
			Constant: constant, View: &t,
		}
	}
	return out
}

// Storage implements [modelfile.View]. What a pickle holds nobody knows: each
// tensor of one is its own.
func (t *Tensor) Storage() modelfile.Storage {
	if t.Pickled {
		return modelfile.Storage{File: t.File, Name: t.Name}
	}
	return modelfile.Storage{File: t.File, Offset: t.StorageOffset}
}

// Strides implements [modelfile.View].
func (t *Tensor) Strides() []int64 { return t.Stride }
