package inspect

import (
	"context"
	"encoding/json"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// maxShardIndex is the longest index that is read, in bytes: seven times that of
// the largest known model.
const maxShardIndex = 64 << 20

// readShardIndex reads a model.safetensors.index.json, verified: which shard, a
// name beside the index, holds which tensor.
func readShardIndex(ctx context.Context, src carton.Source, m carton.Member) (map[string]string, string, error) {
	if m.Size > maxShardIndex {
		return nil, "is too large for an index", nil
	}
	b, err := carton.ReadMember(ctx, src, m.Path, maxShardIndex)
	if err != nil {
		return nil, "", err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, err.Error(), nil //nolint:nilerr // content is its author's: a note
	}
	return index.WeightMap, "", nil
}
