package pt2

import (
	"errors"
	"fmt"
	"slices"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// Folders and files of torch/csrc/export/pt2_archive_constants.h at v2.9.1.
const (
	modelsDir      = "models/"
	weightsDir     = "data/weights/"
	constantsDir   = "data/constants/"
	aotInductorDir = "data/aotinductor/"

	weightsConfig   = "_weights_config.json"
	constantsConfig = "_constants_config.json"
)

// payload is an entry of a weights or constants config: PayloadMeta.
type payload struct {
	path    string
	param   bool
	pickled bool
	meta    *meta
}

// exported reads the models that torch.export saved, one after the other, for
// their documents are neighbours.
func (o *opener) exported() error {
	defined := o.named(modelsDir, ".json")
	names := slices.Concat(defined, o.named(weightsDir, weightsConfig), o.named(constantsDir, constantsConfig))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		m := o.model(name)
		if _, found := slices.BinarySearch(defined, name); !found {
			o.find("model %s has no definition, but weights or constants", quote(name))
		} else if err := o.definition(m, modelsDir+name+".json"); err != nil {
			return err
		}
		if err := o.config(m, weightsDir, name+weightsConfig); err != nil {
			return err
		}
		if err := o.config(m, constantsDir, name+constantsConfig); err != nil {
			return err
		}
	}
	return nil
}

// config reads a weights or constants config, where there is one.
func (o *opener) config(m *Model, folder, file string) error {
	if !o.files.has(folder + file) {
		return nil
	}
	return o.files.document(folder+file, func(r *jsonstream.Reader) error {
		found := false
		err := r.Object(func(key string) error {
			if key != "config" {
				return r.Skip()
			}
			found = true
			return r.Object(func(name string) error {
				p, err := readPayload(r)
				if err == nil {
					err = o.payload(m, folder, name, p)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", quote(name), err)
				}
				return nil
			})
		})
		if err == nil && !found {
			err = errors.New("has no config")
		}
		return err
	})
}

func readPayload(r *jsonstream.Reader) (p payload, err error) {
	err = readFields(r, map[string]func() error{
		"path_name":   into(&p.path, r.String),
		"is_param":    into(&p.param, r.Bool),
		"use_pickle":  into(&p.pickled, r.Bool),
		"tensor_meta": into(&p.meta, func() (*meta, error) { return readMeta(r) }),
	})
	if err == nil && p.path == "" {
		err = errors.New("has no path_name")
	}
	return p, err
}

// payload adds a tensor or object to a model.
func (o *opener) payload(m *Model, folder, name string, p payload) error {
	e := o.files.entry(folder + p.path)
	if e == nil {
		return fmt.Errorf("lies in %s, which the archive does not hold", quote(folder+p.path))
	}
	if err := o.files.keep(0, name, p.path); err != nil {
		return err
	}
	o.blobs[folder+p.path], o.found[[2]string{m.Name, name}] = true, true
	if p.meta == nil {
		if !p.pickled {
			return errors.New("has no tensor_meta, and is not pickled")
		}
		return nil // an object that is no tensor
	}
	t := Tensor{Name: name, File: folder + p.path, Param: p.param, Pickled: p.pickled, BigEndian: o.bigEndian}
	if err := o.view(&t, p.meta, e); err != nil {
		return err
	}
	if folder == constantsDir {
		m.Constants = append(m.Constants, t)
	} else {
		m.Weights = append(m.Weights, t)
	}
	return nil
}

// view completes a tensor from its meta and its storage, and checks that it lies
// inside.
func (o *opener) view(t *Tensor, m *meta, e *zipdir.Entry) error {
	if err := o.another(2 * len(m.sizes)); err != nil {
		return err
	}
	known := m.dtype != ""
	t.DType, t.Stride, t.StorageOffset = m.dtype, m.strides, m.offset
	t.Shape = make([]int64, len(m.sizes))
	for i, s := range m.sizes {
		if s.Symbol != "" {
			return fmt.Errorf("dimension %d is %s, and a stored tensor has no symbols", i, quote(s.Symbol))
		}
		t.Shape[i] = s.Size
	}
	switch {
	case len(t.Stride) != len(t.Shape):
		return fmt.Errorf("has %d strides for %d dimensions", len(t.Stride), len(t.Shape))
	case t.StorageOffset < 0 || slices.Contains(t.Stride, -1):
		return errors.New("its strides or its offset are symbolic, and a stored tensor has no symbols")
	}
	size := int64(1)
	if known {
		size = t.elementSize()
	}
	n, err := checkSize(t.Shape, size)
	if err != nil {
		return err
	}
	first, count, err := t.extent()
	if err != nil {
		return err
	}
	const strided = 7 // schema.py, class Layout
	t.entry, t.Offset = e, predicted(e)
	switch {
	case t.Pickled:
		t.why = "is pickled"
	case e.Method != zipdir.Stored:
		t.why = "is compressed"
	case !known:
		t.why = fmt.Sprintf("has the type %d, which is not known", m.scalarType)
		return nil
	case m.layout != strided:
		t.why = fmt.Sprintf("has the layout %d, which is not strided", m.layout)
	case n > 0 && e.Size == 0:
		t.why = "was saved without data"
		return nil
	}
	if t.Pickled || e.Method != zipdir.Stored {
		t.Offset = -1
	}
	if t.why != "" || count == 0 {
		return nil
	}
	if end, room := first+count, e.Size/t.elementSize(); end > room {
		return fmt.Errorf("reaches to element %d of a storage of %d bytes, which has room for %d", end, e.Size, room)
	}
	return nil
}

// another counts a tensor of so many sizes and strides.
func (o *opener) another(dims int) error {
	if o.tensors++; o.tensors > MaxTensors {
		return errtext.Limit(ErrFormat, "has more than %d tensors", MaxTensors)
	}
	return o.files.keep(dims)
}
