package inspect

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/byname"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// shardIndexSuffix ends the names of the files that say which shard holds which
// tensor: model.safetensors.index.json.
const shardIndexSuffix = ".safetensors.index.json"

// shardIndexes returns the members that index a sharded set.
func shardIndexes(members []carton.Member) []carton.Member {
	var out []carton.Member
	seen := map[string]bool{}
	for _, m := range members {
		// Symlinks are other names for what has been read, in folders of their own:
		// the shards that an index names lie beside it.
		if strings.HasSuffix(byname.LowerASCII(m.Path), shardIndexSuffix) && !seen[m.Path] {
			seen[m.Path] = true
			out = append(out, m)
		}
	}
	return out
}

// checkShards compares an index with the headers of the shards that it names:
// every tensor that it lists is in its shard, and every tensor of its shards is
// listed.
func checkShards(index carton.Member, weightMap map[string]string, contents map[string]content) []Note {
	var notes []Note
	add := func(format string, args ...any) {
		notes = append(notes, Note{Member: index.Path, Text: fmt.Sprintf(format, args...)})
	}
	byShard := map[string]map[string]bool{}
	for name, shard := range weightMap {
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
		for _, t := range c.tensors {
			if listed[t.Name] {
				missing--
				continue
			}
			if unlisted++; first == "" {
				first = t.Name
			}
		}
		if missing > 0 {
			add("%s lacks %d of the %d tensors that the index puts there", carton.QuotePath(shard), missing, len(listed))
		}
		if unlisted > 0 {
			add("%s holds %d tensors that the index does not put there, such as %s", carton.QuotePath(shard), unlisted, errtext.Quoted(first))
		}
	}
	return notes
}

// shardNotes reads the indexes and compares them with what was found.
func shardNotes(ctx context.Context, src carton.Source, members []carton.Member, contents map[string]content, opts Options) ([]Note, error) {
	var notes []Note
	for _, m := range shardIndexes(members) {
		weightMap, note, err := readShardIndex(ctx, src, m)
		if linked, ok := outOfReach(ctx, m, err, opts); ok {
			note, err = linked.notes[0], nil
		}
		if err != nil {
			return nil, err
		}
		if note != "" {
			notes = append(notes, Note{Member: m.Path, Text: note})
			continue
		}
		notes = append(notes, checkShards(m, weightMap, contents)...)
	}
	return notes, nil
}
