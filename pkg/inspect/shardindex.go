package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// readShardIndex reads a model.safetensors.index.json, verified: which shard, a
// name beside the index, holds which tensor. What is wrong with it is the note;
// the error is the source's.
func readShardIndex(ctx context.Context, src carton.Source, m carton.Member) (weightMap map[string]string, note string, err error) {
	r, err := src.Open(ctx, m.Path)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	index, err := safetensors.ReadIndex(r)
	switch {
	case errors.Is(err, safetensors.ErrFormat):
		return nil, err.Error(), nil
	case err == nil:
		_, err = io.Copy(io.Discard, r) // to the end, where the hash is checked
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", carton.QuotePath(m.Path), err)
	}
	return index.Files, "", nil
}
