package registry

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// PushStream stores a blob of size bytes whose digest nobody knows, and returns
// it: what open gives travels once, in chunks, and the digest follows in the
// request that completes the blob. An attempt that fails goes on in the session,
// but reads from the beginning: only a reader that was opened there can have a
// word about the content.
//
// A registry that takes no chunks, or forgets the session after the first, is
// layout.ErrNoStream.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks
func (r *Repository) PushStream(
	ctx context.Context, size int64, open layout.Opener, w layout.Watch,
) (digest.Digest, error) {
	c := &content{desc: ocispec.Descriptor{Size: size}, open: open, digestLast: true}
	chunk := r.client.opts.ChunkSize
	if chunk <= 0 {
		chunk = firstChunk
	}
	u := &upload{repo: r, content: c, watch: w.NonNil(), strategy: r.host.strategyFor(size, chunk, true)}
	if size < 2 || u.strategy.chunk == 0 {
		return "", fmt.Errorf("%s takes no chunks: %w", r.host.host, layout.ErrNoStream)
	}
	err := u.run(r.push(ctx), nil)
	switch {
	case err != nil && u.strategy.impossible:
		return "", fmt.Errorf("%w: %w", err, layout.ErrNoStream)
	case err != nil:
		return "", fmt.Errorf("blob: %w", err)
	}
	return c.desc.Digest, nil
}
