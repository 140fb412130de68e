package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// shardIndex is a file that says which shard holds which tensor.
type shardIndex struct {
	carton.Member
	shards map[string]string // by the names of tensors: files beside the index
}

// shardIndexes reads the members whose names end so, verified. Symlinks among them
// are other names for the same, in folders of their own: the shards that an index
// names lie beside it. One that is broken, or out of reach, is a note.
func shardIndexes(
	ctx context.Context, src carton.Source, members []carton.Member, opts Options, ends ...string,
) ([]shardIndex, []Note, error) {
	var indexes []shardIndex
	var notes []Note
	for _, m := range members {
		if _, end := filekind.IndexOf(m.Path); end == "" || !slices.Contains(ends, end) {
			continue
		}
		shards, broken, err := readShardIndex(ctx, src, m)
		linked, ok := outOfReach(ctx, file{Member: m}, err, opts)
		switch {
		case ok:
			notes = append(notes, Note{Member: m.Path, Text: linked.Notes[0]})
		case err != nil:
			return nil, nil, err
		case broken != nil:
			notes = append(notes, Note{Member: m.Path, Text: broken.Error()})
		default:
			indexes = append(indexes, shardIndex{m, shards})
		}
	}
	return indexes, notes, nil
}

// readShardIndex reads one index. What is wrong with it is broken; err is the
// source's.
func readShardIndex(
	ctx context.Context, src carton.Source, m carton.Member,
) (shards map[string]string, broken, err error) {
	r, err := src.Open(ctx, m.Path)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	index, err := safetensors.ReadIndex(r)
	if errors.Is(err, safetensors.ErrFormat) {
		return nil, err, nil
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r) // to the end, where the hash is checked
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", errtext.Quote(m.Path), err)
	}
	return index.Files, nil, nil
}

// checkShards compares an index with the headers of the shards that it names:
// every tensor that it lists is in its shard, and every tensor of its shards is
// listed.
func checkShards(index shardIndex, contents map[string]*content) []Note {
	var notes []Note
	add := func(format string, args ...any) {
		notes = append(notes, Note{Member: index.Path, Text: fmt.Sprintf(format, args...)})
	}
	byShard := map[string]map[string]bool{}
	for name, shard := range index.shards {
		if byShard[shard] == nil {
			byShard[shard] = map[string]bool{}
		}
		byShard[shard][name] = true
	}
	for _, shard := range slices.Sorted(maps.Keys(byShard)) {
		listed := byShard[shard]
		c, ok := contents[path.Join(path.Dir(index.Path), shard)]
		switch {
		case !ok:
			notes = append(notes, missingShard(index.Path, shard))
			continue
		case !c.read: // what is wrong with it is said
			continue
		}
		missing, unlisted := len(listed), 0
		var first string
		for _, t := range c.Tensors {
			if listed[t.Name] {
				missing--
				continue
			}
			if unlisted++; first == "" {
				first = t.Name
			}
		}
		if missing > 0 {
			add("%s lacks %d of the %d tensors that the index puts there", errtext.Quote(shard), missing, len(listed))
		}
		if unlisted > 0 {
			add("%s holds %d tensors that the index does not put there, such as %s",
				errtext.Quote(shard), unlisted, errtext.Quoted(first))
		}
	}
	return notes
}

// missingShard is the note for a shard that an index lists and nobody has: the
// model is not whole.
func missingShard(index, shard string) Note {
	text := fmt.Sprintf("names the shard %s, which is not there", errtext.Quote(shard))
	return Note{Member: index, Text: text, Err: &carton.Error{Path: index, Kind: carton.ErrFormat, Msg: text}}
}
