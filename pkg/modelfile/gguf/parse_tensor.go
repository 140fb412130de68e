package gguf

import (
	"fmt"
	"math"
	"slices"

	"github.com/carton-oci/carton-oci/internal/dtype"
)

// setAlign takes the alignment from the keys.
func (h *Header) setAlign() error {
	i := slices.IndexFunc(h.Keys, func(k Key) bool { return k.Name == keyAlignment })
	if i < 0 {
		return nil
	}
	k := &h.Keys[i]
	n, _ := k.Value.(uint64)
	if k.Type != Uint32 || n == 0 || n&(n-1) != 0 || n > MaxAlign {
		return fmt.Errorf("%s: got %v of the type %d, want a power of two of at most %d, of the type %d", keyAlignment,
			k.Value, k.Type, MaxAlign, Uint32)
	}
	h.Align = int64(n)
	return nil
}

// tensor reads what says what a tensor is, and where.
func (p *parser) tensor(alignment int64) (t Tensor, err error) {
	if t.Name, err = p.name(); err != nil {
		return t, err
	}
	if err = p.keep(len(t.Name)); err == nil {
		err = p.dims(&t)
	}
	if err == nil {
		err = p.place(&t, alignment)
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", quote(t.Name), err)
	}
	return t, nil
}

// dims reads the shape.
func (p *parser) dims(t *Tensor) error {
	n, err := p.number(4)
	if err != nil {
		return err
	}
	if n > MaxDims {
		return fmt.Errorf("it has %d dimensions, and may have %d", n, MaxDims)
	}
	t.Shape = make([]int64, n)
	for i := range t.Shape {
		d, err := p.number(8)
		if err != nil {
			return err
		}
		if d == 0 || d > math.MaxInt64 {
			return fmt.Errorf("it has a dimension of %d", d)
		}
		t.Shape[len(t.Shape)-1-i] = int64(d)
	}
	return nil
}

// place reads type and offset.
func (p *parser) place(t *Tensor, alignment int64) error {
	kind, err := p.number(4)
	if err != nil {
		return err
	}
	offset, err := p.number(8)
	if err != nil {
		return err
	}
	t.Type = Type(kind)
	elements, ok := dtype.Size(t.Shape, 1)
	if ok {
		t.Bytes, ok = t.Type.bytes(elements)
	}
	if !ok {
		return fmt.Errorf("its shape %v is too large for any file", t.Shape)
	}
	row := int64(1)
	if len(t.Shape) > 0 {
		row = t.Shape[len(t.Shape)-1]
	}
	if x, known := types[t.Type]; known && row%x.block != 0 {
		return fmt.Errorf("it has rows of %d elements, which don't fill blocks of %d (%s)", row, x.block, x.name)
	}
	switch {
	case offset >= maxEnd:
		return fmt.Errorf("it begins at %d of the data, which no file can reach", offset)
	case offset%uint64(alignment) != 0:
		return fmt.Errorf("it begins at %d of the data, and not at a multiple of %d", offset, alignment)
	}
	t.Offset = int64(offset)
	return nil
}
