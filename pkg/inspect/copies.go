package inspect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// shardSets reads the indexes of sharded models, and returns the shards that the
// index of each folder lists, by their paths. Of several indexes in one folder that
// with the shortest name counts, of those the first by path:
// model.safetensors.index.json before model.safetensors.index.fp16.json. A shard
// that is not there is a note, and so is an index that is broken, which then
// counts for nothing.
func shardSets(
	ctx context.Context, src carton.Source, members []carton.Member, opts Options,
) (map[string]map[string]bool, []Note, error) {
	indexes, notes, err := shardIndexes(ctx, src, members, opts, filekind.ShardIndex, filekind.PyTorchShardIndex)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(indexes,
		func(a, b shardIndex) int { return cmp.Compare(len(path.Base(a.Path)), len(path.Base(b.Path))) })
	paths := map[string]bool{} // of members
	for _, m := range members {
		paths[m.Path] = len(indexes) > 0
	}
	sets := map[string]map[string]bool{}
	for _, index := range indexes {
		folder := path.Dir(index.Path)
		listed := map[string]bool{}
		for _, shard := range index.shards {
			listed[path.Join(folder, shard)] = true
		}
		for _, shard := range slices.Sorted(maps.Keys(listed)) {
			if !paths[shard] {
				notes = append(notes, missingShard(index.Path, path.Base(shard)))
			}
		}
		if _, end := filekind.IndexOf(index.Path); sets[folder] == nil && end == filekind.ShardIndex {
			sets[folder] = listed
		}
	}
	slices.SortStableFunc(notes, func(a, b Note) int { return strings.Compare(a.Member, b.Member) })
	return sets, notes, nil
}

// copies returns which files are other copies of a model that is counted already,
// by their hashes: safetensors files that the index of their folder does not list;
// and NAME.VARIANT.safetensors beside NAME.safetensors whose tensors have the same
// names and shapes. A content that is no copy under one of its paths is none.
func copies(members []carton.Member, files []file, facts []content, sets map[string]map[string]bool) map[string]bool {
	layouts := map[string]layout{} // by hash
	for i, f := range files {
		layouts[f.Hash] = facts[i].layout
	}
	byPath := map[string]layout{} // layouts, of safetensors files
	for _, m := range members {
		if l := layouts[m.Hash]; l.tensors > 0 && formatOf(m.Path) == filekind.Safetensors {
			byPath[m.Path] = l
		}
	}
	out, counts := map[string]bool{}, map[string]bool{}
	for _, m := range members {
		if formatOf(m.Path) != filekind.Safetensors {
			continue
		}
		if set, indexed := sets[path.Dir(m.Path)]; indexed && !set[m.Path] || !indexed && isVariant(m.Path, byPath) {
			out[m.Hash] = true
		} else {
			counts[m.Hash] = true
		}
	}
	maps.DeleteFunc(out, func(hash string, _ bool) bool { return counts[hash] })
	return out
}

// ggufCopies returns the GGUF files of models that are counted already, by their
// hashes: of several with the same tensors, as the quantisations of one model have,
// the first by path counts.
func ggufCopies(sets []*partSet) map[string]bool {
	out, seen := map[string]bool{}, map[layout]bool{}
	for _, s := range sets {
		var all layout
		for _, c := range s.parts {
			all = all.add(c.layout)
		}
		if all.tensors > 0 && seen[all] {
			for _, c := range s.parts {
				out[c.Hash] = true
			}
		}
		seen[all] = true
	}
	return out
}

// isVariant reports whether a file is another's variant: the same name but for
// what follows a dot, and the same layout.
func isVariant(file string, layouts map[string]layout) bool {
	name := file[:len(file)-len("."+filekind.Safetensors)]
	base := strings.LastIndexByte(name, '/') + 1
	for i := strings.LastIndexByte(name, '.'); i > base; i = strings.LastIndexByte(name[:i], '.') {
		if l := layouts[file]; l.tensors > 0 && layouts[name[:i]+file[len(name):]] == l {
			return true
		}
	}
	return false
}

// layout is what a file's tensors are called, and of what shapes: the same for the
// same tensors in any order, and in any number of files. The zero value is that of no
// tensors.
type layout struct {
	tensors int
	sum     [sha256.Size]byte // of their hashes
}

func layoutOf(tensors []modelfile.Tensor) layout {
	var l layout
	for _, i := range byName(tensors) {
		l = l.add(layout{1, sha256.Sum256(fmt.Appendf(nil, "%q %v\n", tensors[i].Name, tensors[i].Shape))})
	}
	return l
}

// add returns the layout of the tensors of both.
func (l layout) add(o layout) layout {
	l.tensors += o.tensors
	carry := 0
	for i := range l.sum {
		carry += int(l.sum[i]) + int(o.sum[i])
		l.sum[i] = byte(carry)
		carry >>= 8
	}
	return l
}
