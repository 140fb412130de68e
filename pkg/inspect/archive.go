package inspect

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/carton-oci/carton-oci/internal/byname"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// noteSkipped is what is said of a PT2 archive that is not looked into.
const noteSkipped = "can only be read from its beginning here, and is described only once it was extracted"

// The reasons for not looking into an archive that is not broken.
var (
	errSkipped = hint.With(errors.New(noteSkipped), "pull it with --unpack, and look into the folder")
	errNoSize  = errors.New("is of unknown size, and so its end can't be found")
)

// skipped reports whether a file is not looked into because that would cost
// reading it all.
func skipped(f file, opts Options) bool {
	return f.format == byname.PT2 && !ranged(f.Member) && !opts.Through
}

// packedTensor is a tensor of a PT2 archive.
type packedTensor struct {
	*pt2.Tensor
	constant bool // neither parameter nor buffer
}

// lookIntoPT2 reads what an archive says of itself.
func lookIntoPT2(ctx context.Context, src carton.Source, f file, opts Options) (content, error) {
	switch {
	case skipped(f, opts):
		return content{notes: []string{noteSkipped}, err: errSkipped}, nil
	case f.Size < 0:
		return content{notes: []string{errNoSize.Error()}, err: errNoSize}, nil
	}
	in := &memberAt{ctx: ctx, src: src, member: f.Member}
	archive, err := pt2.Open(in, f.Size)
	if sourceErr := in.close(); sourceErr != nil {
		return content{}, sourceErr
	}
	if err != nil {
		return broken(f.Member, err.Error()), nil
	}
	c := content{read: true, findings: archive.Findings}
	member := &f.Member
	n := 0
	for i := range archive.Models {
		m := &archive.Models[i]
		n += len(m.Weights) + len(m.Constants)
	}
	c.tensors = make([]Tensor, 0, n)
	for i := range archive.Models {
		m := &archive.Models[i]
		before := len(c.tensors)
		for j := range m.Weights {
			c.tensors = append(c.tensors, tensorOf(member, m.Name, &m.Weights[j], false))
		}
		weights := c.tensors[before:]
		for j := range m.Constants {
			c.tensors = append(c.tensors, tensorOf(member, m.Name, &m.Constants[j], true))
		}
		info := Model{Name: m.Name, Torch: m.TorchVersion, Tensors: len(weights), Parameters: -1}
		counted(weights, func(t *Tensor) { info.Parameters = add(max(info.Parameters, 0), t.Elements()) })
		for j := range m.AOTInductor {
			p := &m.AOTInductor[j]
			info.Backends = append(info.Backends, Backend{Name: p.Backend, Device: p.Device})
			for k := range p.Weights {
				c.tensors = append(c.tensors, tensorOf(member, p.Folder, &p.Weights[k], false))
			}
		}
		c.models = append(c.models, info)
	}
	return c, nil
}

func tensorOf(m *carton.Member, model string, t *pt2.Tensor, constant bool) Tensor {
	return Tensor{
		Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes(), Member: m.Path, Model: model, Param: t.Param,
		at: location{member: m, kind: kindPT2, packed: &packedTensor{t, constant}},
	}
}

// counted visits the tensors that make a file's parameters, each once: of a
// safetensors file all; of an archive the parameters, or all weights where it
// calls none a parameter. What begins at the same element of the same storage is
// one tensor, of several views (a matrix, and that matrix turned) the first of
// the largest.
func counted(tensors []Tensor, visit func(*Tensor)) {
	params := slices.ContainsFunc(tensors, func(t Tensor) bool { return t.Param })
	largest := map[storage]int{}
	for i := range tensors {
		t := &tensors[i]
		p := t.at.packed
		if p == nil {
			visit(t)
			continue
		}
		if p.constant || t.Bytes < 0 || t.Param != params {
			continue
		}
		key := t.begin()
		if j, seen := largest[key]; !seen || t.Bytes > tensors[j].Bytes {
			largest[key] = i
		}
	}
	for _, i := range largest {
		visit(&tensors[i])
	}
}

// storage is where in an archive a tensor begins.
type storage struct {
	file, name string
	offset     int64
}

// begin tells tensors apart that begin at different elements.
func (t *Tensor) begin() storage {
	p := t.at.packed
	if p.Pickled { // what such a file holds nobody knows
		return storage{file: p.File, name: p.Name}
	}
	return storage{file: p.File, offset: p.StorageOffset}
}

// sameTensor reports whether two tensors of one name are the same elements.
func sameTensor(a, b Tensor) bool {
	p, q := a.at.packed, b.at.packed
	return p != nil && q != nil && a.Member == b.Member && a.begin() == b.begin() &&
		p.DType == q.DType && slices.Equal(p.Shape, q.Shape) && slices.Equal(p.Stride, q.Stride)
}

// openPacked opens the elements of an archive's tensor. They are never verified:
// what says where they are was read from ranges.
func openPacked(ctx context.Context, src carton.Source, t *Tensor) (io.ReadCloser, error) {
	p, m := t.at.packed, *t.at.member
	in := &memberAt{ctx: ctx, src: src, member: m}
	r, err := p.Read(in) // checks the local header
	if err != nil {
		return nil, errors.Join(in.close(), err)
	}
	// What lies in one piece is one range, unless it is little more than what was
	// read already. Elsewhere the archive's reader knows which pieces it needs.
	off, n := p.Span()
	if !p.Plain() || n <= readahead.Most || !ranged(m) {
		return &packedReader{r, in}, nil
	}
	if err := in.close(); err != nil {
		return nil, err
	}
	return src.OpenRange(ctx, m.Path, off, n)
}

// packedReader closes what the archive is read from.
type packedReader struct {
	io.Reader
	in *memberAt
}

func (r *packedReader) Close() error { return r.in.close() }
