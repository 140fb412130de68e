package convert

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// maxPrefetch is the largest blob, in bytes, that is fetched before it is asked for.
const maxPrefetch = 256 << 10

// prefetcher is a Fetcher that fetches small blobs before they are asked for, all at
// the same time, so that opening an artifact and reading its carton.toml waits for
// one answer and not for one after another. Who asks for them has them from memory,
// as unverified as from where they are.
type prefetcher struct {
	layout.Fetcher
	running sync.WaitGroup

	mu    sync.Mutex
	blobs map[digest.Digest]*prefetched
}

type prefetched struct {
	done  chan struct{} // closed when the rest is there
	bytes []byte
	err   error
}

// start begins to fetch a blob. ctx ends the fetching.
func (f *prefetcher) start(ctx context.Context, desc ocispec.Descriptor) {
	p := &prefetched{done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blobs[desc.Digest] != nil {
		return
	}
	f.blobs[desc.Digest] = p
	f.running.Go(func() {
		defer close(p.done)
		r, err := f.Fetcher.OpenRange(ctx, desc, 0, -1)
		if err != nil {
			p.err = err
			return
		}
		defer r.Close()
		p.bytes, p.err = io.ReadAll(io.LimitReader(r, desc.Size))
	})
}

// OpenRange implements layout.Fetcher. An error of a blob that was fetched before is
// told once; who asks again begins anew.
func (f *prefetcher) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	f.mu.Lock()
	p := f.blobs[desc.Digest]
	f.mu.Unlock()
	if p == nil {
		return f.Fetcher.OpenRange(ctx, desc, off, n)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	size := int64(len(p.bytes))
	if p.err == nil && size == desc.Size && off <= size {
		if n < 0 || n > size-off {
			n = size - off
		}
		return io.NopCloser(bytes.NewReader(p.bytes[off : off+n])), nil
	}
	f.mu.Lock()
	delete(f.blobs, desc.Digest)
	f.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	return f.Fetcher.OpenRange(ctx, desc, off, n)
}

// prefetch begins to fetch what opening the artifact and reading its carton.toml
// takes, where all of it is in small raw layers.
func (s *Source) prefetch(ctx context.Context) {
	var wanted []ocispec.Descriptor
	for i := range s.layers {
		l := &s.layers[i]
		known := l.name == carton.ManifestName || l.name == carton.InfoName
		if l.format == formatRaw && l.symlink == "" && known && s.manifest.Layers[i].Size <= maxPrefetch {
			wanted = append(wanted, s.manifest.Layers[i])
		}
	}
	if len(wanted) != 2 {
		return
	}
	if s.opts.ReadsConfig && s.manifest.Config.Size <= maxPrefetch {
		wanted = append(wanted, s.manifest.Config)
	}
	ctx, _ = s.bind(context.WithoutCancel(ctx)) // it ends with the source
	for _, desc := range wanted {
		s.fetcher.start(ctx, desc)
	}
}
