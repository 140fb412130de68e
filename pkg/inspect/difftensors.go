package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// compareContents looks into the members that changed. A header that belongs to
// several of them is read for each: there are few.
func (d *Difference) compareContents(ctx context.Context, a, b carton.Source, opts Options) error {
	var files []file // of both cartons the one that is dearer to read
	var changes []int
	for i, c := range d.Changed {
		format := formatOf(c.A.Path)
		if c.A.Hash == c.B.Hash || len(readable([]file{{c.A, format}})) == 0 {
			continue
		}
		dear := c.A
		if ranged(dear) {
			dear = c.B
		}
		files, changes = append(files, file{dear, format}), append(changes, i)
	}
	notes := make([][]string, len(files))
	list := newListing()
	err := scan(ctx, files, opts, func(ctx context.Context, i int, s *share) (err error) {
		notes[i], err = d.Changed[changes[i]].compare(ctx, a, b, opts, s, list)
		return err
	})
	if err != nil {
		return err
	}
	for i, change := range changes {
		c := &d.Changed[change]
		if list.full() && c.Compared {
			c.Compared, c.Tensors = false, nil
			notes[i] = append(notes[i], fmt.Sprintf("is not compared: the tensors that differ in all files take more than %d bytes of memory", MaxListedBytes))
		}
		for _, text := range notes[i] {
			d.Notes = append(d.Notes, Note{Member: c.A.Path, Text: text})
		}
	}
	return nil
}

// compare reads both headers, one after the other, and keeps what differs.
func (c *Change) compare(ctx context.Context, a, b carton.Source, opts Options, s *share, list *listing) (notes []string, err error) {
	format := formatOf(c.A.Path)
	old, err := look(ctx, a, file{c.A, format}, opts, s)
	if err != nil {
		return nil, err
	}
	now, err := look(ctx, b, file{c.B, format}, opts, s)
	if err != nil {
		return nil, err
	}
	notes = slices.Compact(append(slices.Clone(old.notes), now.notes...))
	if c.Compared = old.read && now.read; !c.Compared {
		return notes, nil
	}
	changes := compareTensors(old.tensors, now.tensors)
	if !list.keep(changesCost(changes)) {
		return notes, nil
	}
	for i := range changes { // the tensors that are the same go
		changes[i].A, changes[i].B = changes[i].A.alone(), changes[i].B.alone()
	}
	c.Tensors = changes
	return notes, nil
}

// changesCost is what changes take in memory, in bytes.
func changesCost(changes []TensorChange) (n int64) {
	for _, c := range changes {
		for _, t := range []*Tensor{c.A, c.B} {
			if t != nil {
				n += t.cost()
			}
		}
	}
	return n
}

// compareTensors compares two lists of tensors by name and model, in that order.
// Of several with both the last counts.
func compareTensors(a, b []Tensor) []TensorChange {
	inA, inB := byName(a), byName(b)
	var changes []TensorChange
	for i, j := 0, 0; i < len(inA) || j < len(inB); {
		var order int
		switch {
		case i == len(inA):
			order = 1
		case j == len(inB):
			order = -1
		default:
			order = compareNames(&a[inA[i]], &b[inB[j]])
		}
		switch {
		case order < 0:
			changes = append(changes, TensorChange{Kind: TensorRemoved, A: &a[inA[i]]})
			i++
			continue
		case order > 0:
			changes = append(changes, TensorChange{Kind: TensorAdded, B: &b[inB[j]]})
			j++
			continue
		}
		old, t := &a[inA[i]], &b[inB[j]]
		i, j = i+1, j+1
		switch {
		case !slices.Equal(t.Shape, old.Shape):
			changes = append(changes, TensorChange{Kind: TensorReshaped, A: old, B: t})
		case t.DType != old.DType:
			changes = append(changes, TensorChange{Kind: TensorRetyped, A: old, B: t})
		}
	}
	return changes
}

// byName returns the indexes of tensors, sorted by their names and models, which
// are all different.
func byName(tensors []Tensor) []int32 {
	order := make([]int32, len(tensors))
	for i := range order { // backwards, for the last of equal ones stays
		order[i] = int32(len(tensors) - 1 - i)
	}
	slices.SortStableFunc(order, func(i, j int32) int { return compareNames(&tensors[i], &tensors[j]) })
	return slices.CompactFunc(order, func(i, j int32) bool { return compareNames(&tensors[i], &tensors[j]) == 0 })
}

func compareNames(t, u *Tensor) int {
	return cmp.Or(strings.Compare(t.Name, u.Name), strings.Compare(t.Model, u.Model))
}

// tensor returns the tensor, from whichever carton has it.
func (c TensorChange) tensor() *Tensor {
	if c.B != nil {
		return c.B
	}
	return c.A
}
