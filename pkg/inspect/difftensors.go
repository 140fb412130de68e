package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// compareContents looks into the members that changed. A header that belongs to
// several of them is read for each: there are few.
func (d *Difference) compareContents(ctx context.Context, a, b carton.Source, opts Options) error {
	var files []file // of both cartons the one that is costlier to read
	var changes []int
	for i, c := range d.Changed {
		format := formatOf(c.A.Path)
		if c.A.Hash == c.B.Hash || len(readable([]file{{c.A, format}})) == 0 {
			continue
		}
		costly := c.A
		if ranged(costly) {
			costly = c.B
		}
		files, changes = append(files, file{costly, format}), append(changes, i)
	}
	notes := make([][]string, len(files))
	list := newListing()
	err := scan(ctx, files, opts, func(ctx context.Context, i int, s *budget) (err error) {
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
			notes[i] = append(notes[i], fmt.Sprintf(
				"is not compared: the tensors that differ in all files take more than %d bytes of memory",
				MaxListedBytes))
		}
		for _, text := range notes[i] {
			d.Notes = append(d.Notes, Note{Member: c.A.Path, Text: text})
		}
	}
	return nil
}

// compare reads both headers, one after the other, and keeps what differs.
func (c *Change) compare(
	ctx context.Context, a, b carton.Source, opts Options, s *budget, list *listing,
) (notes []string, err error) {
	format := formatOf(c.A.Path)
	old, err := look(ctx, a, file{c.A, format}, opts, s)
	if err != nil {
		return nil, err
	}
	now, err := look(ctx, b, file{c.B, format}, opts, s)
	if err != nil {
		return nil, err
	}
	notes = slices.Compact(append(slices.Clone(old.Notes), now.Notes...))
	if c.Compared = old.read && now.read; !c.Compared {
		return notes, nil
	}
	changes, n := compareTensors(&old, &now)
	if list.keep(n) {
		c.Tensors = changes
	}
	return notes, nil
}

// compareTensors compares the tensors of two files by name and model, in that
// order. Of several with both the last counts. It returns what the changes take in
// memory, in bytes, too.
func compareTensors(a, b *content) (changes []TensorChange, bytes int64) {
	add := func(kind ChangeKind, old, now *Tensor) {
		changes = append(changes, TensorChange{kind, old, now})
		for _, t := range []*Tensor{old, now} {
			if t != nil {
				bytes += cost(&t.Tensor)
			}
		}
	}
	inOrder := func(i, j int) int { return compareNames(&a.Tensors[i], &b.Tensors[j]) }
	merge(byName(a.Tensors), byName(b.Tensors), inOrder, func(i, j *int) {
		switch {
		case j == nil:
			add(TensorRemoved, a.tensor(*i), nil)
		case i == nil:
			add(TensorAdded, nil, b.tensor(*j))
		case !slices.Equal(a.Tensors[*i].Shape, b.Tensors[*j].Shape):
			add(TensorReshaped, a.tensor(*i), b.tensor(*j))
		case a.Tensors[*i].DType != b.Tensors[*j].DType:
			add(TensorRetyped, a.tensor(*i), b.tensor(*j))
		}
	})
	return changes, bytes
}

// byName returns the indexes of tensors, sorted by their names and models, which
// are all different.
func byName(tensors []modelfile.Tensor) []int {
	order := make([]int, len(tensors))
	for i := range order { // backwards, for the last of equal ones stays
		order[i] = len(tensors) - 1 - i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareNames(&tensors[i], &tensors[j]) })
	return slices.CompactFunc(order, func(i, j int) bool { return compareNames(&tensors[i], &tensors[j]) == 0 })
}

func compareNames(t, u *modelfile.Tensor) int {
	return cmp.Or(strings.Compare(t.Name, u.Name), strings.Compare(t.Model, u.Model))
}
