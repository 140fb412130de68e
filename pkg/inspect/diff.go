package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Difference is in what two cartons, a and b, differ.
type Difference struct {
	// Same says that the model hashes are the same, and then nothing differs; of what
	// is no carton, that all files are the same.
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
type Rename struct {
	From string `json:"from"`
	To   string `json:"to"`
}

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
	inA, err := a.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("first carton: %w", err)
	}
	inB, err := b.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("second carton: %w", err)
	}
	d.compareMembers(inA, inB)
	if opts.Loose {
		d.compareLoose(inA, inB)
	}
	if err := d.compareInfo(ctx, a, b); err != nil {
		return nil, err
	}
	return d, d.compareContents(ctx, a, b, opts)
}

// compareLoose leaves out what only a carton has. Where either side is one file, its
// name says nothing.
func (d *Difference) compareLoose(inA, inB []carton.Member) {
	made := func(m carton.Member) bool { return m.Path == carton.InfoName || m.Path == carton.IndexName }
	files := func(members []carton.Member) int { return len(slices.DeleteFunc(slices.Clone(members), made)) }
	d.Added, d.Removed = slices.DeleteFunc(d.Added, made), slices.DeleteFunc(d.Removed, made)
	if files(inA) == 1 && files(inB) == 1 {
		d.Renamed = nil
		if len(d.Added) == 1 && len(d.Removed) == 1 {
			d.Added, d.Removed, d.Changed = nil, nil, []Change{{A: d.Removed[0], B: d.Added[0]}}
		}
	}
	d.Same = len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Renamed) == 0
}

// compareMembers sorts out what is in one carton and what is in both. Members
// are in bytewise order of paths.
func (d *Difference) compareMembers(a, b []carton.Member) {
	byPath := func(x, y carton.Member) int { return strings.Compare(x.Path, y.Path) }
	merge(a, b, byPath, func(old, m *carton.Member) {
		switch {
		case m == nil:
			d.Removed = append(d.Removed, *old)
		case old == nil:
			d.Added = append(d.Added, *m)
		case old.Hash != m.Hash || old.Target != m.Target:
			d.Changed = append(d.Changed, Change{A: *old, B: *m})
		}
	})
	d.findRenamed()
}

// merge calls visit for every item of two sorted lists in turn, with nil for the
// list that lacks it.
func merge[T any](a, b []T, compare func(x, y T) int, visit func(inA, inB *T)) {
	for len(a) > 0 || len(b) > 0 {
		var order int
		switch {
		case len(b) == 0:
			order = -1
		case len(a) == 0:
			order = 1
		default:
			order = compare(a[0], b[0])
		}
		var inA, inB *T
		if order <= 0 {
			inA, a = &a[0], a[1:]
		}
		if order >= 0 {
			inB, b = &b[0], b[1:]
		}
		visit(inA, inB)
	}
}

// findRenamed makes renames of what was removed and added with one content: the
// first that was removed goes with the first that was added, the second with the
// second.
func (d *Difference) findRenamed() {
	added := byContent(d.Added)
	var pairs [][2]int32 // of Removed and Added
	for _, i := range byContent(d.Removed) {
		for len(added) > 0 && compareContents(&d.Added[added[0]], &d.Removed[i]) < 0 {
			added = added[1:]
		}
		if len(added) > 0 && compareContents(&d.Added[added[0]], &d.Removed[i]) == 0 {
			pairs = append(pairs, [2]int32{i, added[0]})
			added = added[1:]
		}
	}
	if len(pairs) == 0 {
		return
	}
	slices.SortFunc(pairs, func(x, y [2]int32) int { return cmp.Compare(x[0], y[0]) })
	d.Renamed = make([]Rename, len(pairs))
	for n, p := range pairs {
		from, to := &d.Removed[p[0]].Path, &d.Added[p[1]].Path
		d.Renamed[n] = Rename{From: *from, To: *to}
		*from, *to = "", ""
	}
	isRenamed := func(m carton.Member) bool { return m.Path == "" }
	d.Removed = slices.DeleteFunc(d.Removed, isRenamed)
	d.Added = slices.DeleteFunc(d.Added, isRenamed)
}

// byContent returns the order of members by their contents, those of one content
// as they are.
func byContent(members []carton.Member) []int32 {
	order := make([]int32, len(members))
	for i := range order {
		order[i] = int32(i) // #nosec G115 -- at most carton.MaxMembers
	}
	slices.SortStableFunc(order, func(i, j int32) int { return compareContents(&members[i], &members[j]) })
	return order
}

// compareContents orders members by what one has in common with its new name.
func compareContents(a, b *carton.Member) int {
	return cmp.Or(strings.Compare(a.Hash, b.Hash), strings.Compare(a.Target, b.Target))
}
