package inspect

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// ErrAmbiguous: several tensors have the name.
var ErrAmbiguous = errors.New("is the name of several tensors")

// Find returns the one tensor that is called name, reading as little as it can:
// where model.safetensors.index.json puts the name into a shard, of all shards
// that one's header; else the headers of all files; and tensor_data only where
// no file has it.
//
// No such tensor is fs.ErrNotExist, and the notes say what could not be looked
// into. Several are ErrAmbiguous, unless they are one tensor of several models
// in one archive; opts.Member and opts.Model choose.
func Find(ctx context.Context, src carton.Source, name string, opts Options) (*Tensor, []Note, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := choose(members, opts.Member)
	if err != nil {
		return nil, nil, err
	}
	files := readable(regular(filesOf(chosen), chosen))
	if opts.Member == "" {
		likely, err := likelyFiles(ctx, src, members, files, name, opts)
		if err != nil {
			return nil, nil, err
		}
		if len(likely) < len(files) {
			t, notes, err := findIn(ctx, src, likely, name, opts)
			if t != nil || err != nil {
				return t, notes, err
			}
		}
	}
	t, notes, err := findIn(ctx, src, files, name, opts)
	if t != nil || err != nil {
		return t, notes, err
	}
	data, more, err := dataTensors(ctx, src, members)
	if err != nil {
		return nil, notes, err
	}
	notes = append(notes, more...)
	for i := range data {
		if data[i].Name == name && opts.Model == "" && (opts.Member == "" || data[i].Member == opts.Member) {
			return &data[i], notes, nil
		}
	}
	return nil, notes, errNoTensor(name)
}

// likelyFiles returns the files without the shards that an index says do not
// hold the tensor.
func likelyFiles(
	ctx context.Context, src carton.Source, members []carton.Member, files []file, name string, opts Options,
) ([]file, error) {
	without := map[string]bool{} // hashes
	hashes := map[string]string{}
	for _, m := range members {
		hashes[m.Path] = m.Hash
	}
	indexes, _, err := shardIndexes(ctx, src, members, opts, filekind.ShardIndex)
	if err != nil {
		return nil, err
	}
	for _, index := range indexes {
		in, ok := index.shards[name]
		if !ok {
			continue
		}
		folder := path.Dir(index.Path)
		for _, shard := range index.shards {
			without[hashes[path.Join(folder, shard)]] = true
		}
		delete(without, hashes[path.Join(folder, in)])
	}
	return slices.DeleteFunc(slices.Clone(files), func(f file) bool { return without[f.Hash] }), nil
}

// findIn looks for the tensor in files.
func findIn(ctx context.Context, src carton.Source, files []file, name string, opts Options) (*Tensor, []Note, error) {
	contents, err := readAll(ctx, src, files, opts, &name)
	if err != nil {
		return nil, nil, err
	}
	all, notes := join(contents)
	var found []Tensor
	for _, t := range all {
		if t.Name == name && !slices.ContainsFunc(found, func(f Tensor) bool { return sameTensor(&f, &t) }) {
			found = append(found, t)
		}
	}
	// What can't be read, such as the pickled weights of a compiled form, is found
	// only where there is nothing else.
	if slices.ContainsFunc(found, func(t Tensor) bool { return t.Readable() == nil }) {
		found = slices.DeleteFunc(found, func(t Tensor) bool { return t.Readable() != nil })
	}
	switch len(found) {
	case 0:
		return nil, notes, nil
	case 1:
		return &found[0], notes, nil
	}
	return nil, notes, ambiguous(name, found)
}

// sameTensor reports whether two tensors of one name are the same elements.
func sameTensor(a, b *Tensor) bool {
	return a.View != nil && b.View != nil && a.Member == b.Member && a.View.Storage() == b.View.Storage() &&
		a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && slices.Equal(a.View.Strides(), b.View.Strides())
}

// ambiguous is the error for several tensors of one name.
func ambiguous(name string, found []Tensor) error {
	var places []string
	members := map[string]bool{}
	for _, t := range found {
		place := errtext.Quote(t.Member)
		if t.Model != "" {
			place += " (model " + errtext.Quoted(t.Model) + ")"
		}
		places, members[t.Member] = append(places, place), true
	}
	err := fmt.Errorf("%s %w: in %s", errtext.Quoted(name), ErrAmbiguous, strings.Join(places, ", "))
	if len(members) > 1 {
		err = hint.With(err, "choose with %s %s", hint.Member, found[0].Member)
	}
	if len(members) < len(found) {
		err = hint.With(err, "choose with %s %s", hint.Model, found[0].Model)
	}
	return err
}
