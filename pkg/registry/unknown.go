package registry

import (
	"context"
	"fmt"
	"math"

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
func (r *Repository) PushStream(ctx context.Context, size int64, open layout.Opener, w layout.Watch) (digest.Digest, error) {
	c := &content{desc: ocispec.Descriptor{Size: size}, open: open, learn: true}
	chunk := r.client.opts.ChunkSize
	if chunk <= 0 {
		chunk = streamChunk
	}
	u := &upload{repo: r, content: c, watch: w.NonNil(), chunk: r.host.chunkFor(size, chunk)}
	if size < 2 || u.chunk == 0 {
		return "", fmt.Errorf("%s takes no chunks: %w", r.host.host, layout.ErrNoStream)
	}
	err := u.run(r.push(ctx), state{}, false)
	switch {
	case err != nil && u.noStream:
		return "", fmt.Errorf("%w: %w", err, layout.ErrNoStream)
	case err != nil:
		return "", fmt.Errorf("blob: %w", err)
	}
	return c.desc.Digest, nil
}

// streamChunk is the size of chunks where nothing speaks against it: what a
// registry refuses of a larger one is read again.
const streamChunk = firstChunk

// newTrail makes the trail of a session. Where the digest is to be learnt it has
// no marks, so that who goes on reads all again.
func (c *content) newTrail() *trail {
	if c.learn {
		return &trail{every: math.MaxInt64}
	}
	return newTrail(c.desc.Size)
}
