package inspect

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// Tensors returns every tensor of every safetensors, GGUF and PT2 member, by path and
// in the order of their bytes, and then those of tensor_data in the order of its
// index. The notes say what is missing from that, and where a sharded set is not
// what its index says. opts.Member that is no member is fs.ErrNotExist; more than
// MaxListedBytes hold is carton.ErrLimit.
func Tensors(ctx context.Context, src carton.Source, opts Options) ([]Tensor, []Note, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := choose(members, opts.Member)
	if err != nil {
		return nil, nil, err
	}
	files := readable(regular(filesOf(chosen), chosen))
	contents, err := readAll(ctx, src, files, opts, nil)
	if err != nil {
		return nil, nil, err
	}
	tensors, notes := join(contents)
	if opts.Member == "" && opts.Model == "" {
		indexes, more, err := shardIndexes(ctx, src, members, opts, filekind.ShardIndex)
		if err != nil {
			return nil, nil, err
		}
		for _, index := range indexes {
			more = append(more, checkShards(index, byPath(members, contents))...)
		}
		for _, set := range partSets(contents) {
			more = append(more, set.check()...)
		}
		slices.SortStableFunc(more, func(a, b Note) int { return strings.Compare(a.Member, b.Member) })
		notes = append(notes, more...)
	}
	data, more, err := dataTensors(ctx, src, members)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range data {
		if opts.Member == "" && opts.Model == "" || t.Member == opts.Member {
			tensors = append(tensors, t)
		}
	}
	for _, n := range more {
		if opts.Member == "" || n.Member == opts.Member {
			notes = append(notes, n)
		}
	}
	return tensors, notes, nil
}

// choose returns the members that opts.Member lets through.
func choose(members []carton.Member, path string) ([]carton.Member, error) {
	if path == "" {
		return members, nil
	}
	for _, m := range members {
		if m.Path == path {
			return []carton.Member{m}, nil
		}
	}
	return nil, &carton.Error{Path: path, Kind: fs.ErrNotExist, Msg: "is not in the carton"}
}

// readAll looks into files, many at once, and keeps the tensors that are called
// name, or all where that is nil; of archives those of opts.Model. All together
// they may take MaxListedBytes.
func readAll(ctx context.Context, src carton.Source, files []file, opts Options, name *string) ([]content, error) {
	contents := make([]content, len(files))
	list := newListing()
	err := scan(ctx, files, opts, func(ctx context.Context, i int, s *budget) error {
		c, err := look(ctx, src, files[i], opts, s)
		if err != nil {
			return err
		}
		if name != nil || opts.Model != "" {
			c.Tensors = slices.DeleteFunc(c.Tensors, func(t modelfile.Tensor) bool {
				return name != nil && t.Name != *name || opts.Model != "" && t.Model != opts.Model
			})
			c.Tensors = slices.Clone(c.Tensors) // the others go
		}
		n := int64(0)
		for i := range c.Tensors {
			n += cost(&c.Tensors[i])
		}
		if !list.keep(n) {
			return errTooMany(opts)
		}
		contents[i] = c
		return nil
	})
	return contents, err
}

// join lists what was found in all files.
func join(contents []content) ([]Tensor, []Note) {
	n := 0
	for _, c := range contents {
		n += len(c.Tensors)
	}
	tensors := make([]Tensor, 0, n)
	var notes []Note
	for i := range contents {
		c := &contents[i]
		for j := range c.Tensors {
			tensors = append(tensors, *c.tensor(j))
		}
		notes = append(notes, c.notes()...)
	}
	return tensors, notes
}

// byPath gives contents by every path that has them: symlinks and copies too.
func byPath(members []carton.Member, contents []content) map[string]*content {
	byHash := map[string]*content{}
	for i := range contents {
		byHash[contents[i].Hash] = &contents[i]
	}
	out := map[string]*content{}
	for _, m := range members {
		if c, ok := byHash[m.Hash]; ok {
			out[m.Path] = c
		}
	}
	return out
}

// errNoTensor is what a name that no tensor has is refused with.
func errNoTensor(name string) error {
	return &carton.Error{Kind: fs.ErrNotExist, Msg: "there is no tensor " + errtext.Quoted(name)}
}
