package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Difference is in what two cartons, a and b, differ.
type Difference struct {
	// Same says that the model hashes are the same, and then nothing differs.
	Same bool
	// Info are the fields of carton.toml that differ.
	Info []FieldChange
	// Added are only in b, Removed only in a; both by path.
	Added, Removed []carton.Member
	// Renamed are in both, with one content and two paths.
	Renamed []Rename
	// Changed have one path and two contents.
	Changed []Change
	// Notes say what could not be compared.
	Notes []Note
}

// Rename is content that has another path in b.
type Rename struct{ From, To string }

// Change is a member whose content, or whose being a symlink, differs.
type Change struct {
	A, B carton.Member
	// Compared says that the headers of both were read.
	Compared bool
	// Tensors are what differs in them; none means the same layout with other
	// bytes.
	Tensors []TensorChange
}

// TensorChange is a tensor that differs.
type TensorChange struct {
	Kind ChangeKind
	// A is the tensor in a, nil where it was added; B the one in b, nil where it
	// was removed.
	A, B *Tensor
}

// ChangeKind says in what a tensor differs.
type ChangeKind string

// The kinds.
const (
	TensorAdded    ChangeKind = "added"
	TensorRemoved  ChangeKind = "removed"
	TensorReshaped ChangeKind = "reshaped" // perhaps of another type, too
	TensorRetyped  ChangeKind = "retyped"  // of the same shape
)

// Diff compares two cartons by MANIFEST, and what differs by headers: no tensor's
// elements are read, and nothing at all where the model hashes are the same.
// LINKS is not compared: it says where a carton is, not what it is.
func Diff(ctx context.Context, a, b carton.Source, opts Options) (*Difference, error) {
	d := &Difference{Same: a.Manifest().ModelHash() == b.Manifest().ModelHash()}
	if d.Same {
		return d, nil
	}
	inA, err := membersByPath(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("first carton: %w", err)
	}
	inB, err := membersByPath(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("second carton: %w", err)
	}
	d.compareMembers(inA, inB)
	if err := d.compareInfo(ctx, a, b); err != nil {
		return nil, err
	}
	return d, d.compareContents(ctx, a, b, opts)
}

func membersByPath(ctx context.Context, src carton.Source) (map[string]carton.Member, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, err
	}
	byPath := make(map[string]carton.Member, len(members))
	for _, m := range members {
		byPath[m.Path] = m
	}
	return byPath, nil
}

// compareMembers sorts out what is in one carton and what is in both.
func (d *Difference) compareMembers(a, b map[string]carton.Member) {
	for _, path := range slices.Sorted(maps.Keys(a)) {
		old := a[path]
		m, ok := b[path]
		switch {
		case !ok:
			d.Removed = append(d.Removed, old)
		case m.Hash != old.Hash || m.Target != old.Target:
			d.Changed = append(d.Changed, Change{A: old, B: m})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[path]; !ok {
			d.Added = append(d.Added, b[path])
		}
	}
	// The first that was removed goes with the first that was added with the same
	// content, the second with the second.
	added := map[string][]int{}
	for i, m := range d.Added {
		added[key(m)] = append(added[key(m)], i)
	}
	gone, come := map[string]bool{}, map[string]bool{}
	for _, m := range d.Removed {
		if to := added[key(m)]; len(to) > 0 {
			d.Renamed = append(d.Renamed, Rename{From: m.Path, To: d.Added[to[0]].Path})
			gone[m.Path], come[d.Added[to[0]].Path] = true, true
			added[key(m)] = to[1:]
		}
	}
	d.Removed = slices.DeleteFunc(d.Removed, func(m carton.Member) bool { return gone[m.Path] })
	d.Added = slices.DeleteFunc(d.Added, func(m carton.Member) bool { return come[m.Path] })
}

// key is what a member and its new name have in common.
func key(m carton.Member) string { return m.Hash + " " + m.Target }
