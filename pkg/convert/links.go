package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// StoreFetcher returns a fetcher that takes linked content from the store where
// that has a blob with the link's hash, whatever its URL says, and asks next for
// all other. next may be nil.
func StoreFetcher(store layout.Store, next links.Fetcher) links.Fetcher {
	return &storeFetcher{store: store, next: next, sizes: map[string]int64{}}
}

type storeFetcher struct {
	store layout.Store
	next  links.Fetcher

	mu    sync.Mutex
	sizes map[string]int64 // by hash; -1: the store has no such blob
}

// Size returns the blob's size.
func (f *storeFetcher) Size(ctx context.Context, link links.Link) (int64, error) {
	size, err := f.stat(ctx, link.Hash)
	switch {
	case err != nil:
		return 0, err
	case size >= 0:
		return size, nil
	case f.next == nil:
		return 0, f.missing(link)
	}
	return f.next.Size(ctx, link)
}

// Open opens a range of the blob.
func (f *storeFetcher) Open(ctx context.Context, link links.Link, off, n int64) (io.ReadCloser, error) {
	size, err := f.stat(ctx, link.Hash)
	switch {
	case err != nil:
		return nil, err
	case size >= 0:
		return carton.NewRange(link.Hash, size, off, n, func(off, n int64) (io.ReadCloser, error) {
			return f.store.OpenRange(ctx, blobOf(link.Hash, size), off, n)
		})
	case f.next == nil:
		return nil, f.missing(link)
	}
	return f.next.Open(ctx, link, off, n)
}

// stat asks the store once for each hash.
func (f *storeFetcher) stat(ctx context.Context, hash string) (int64, error) {
	f.mu.Lock()
	size, ok := f.sizes[hash]
	f.mu.Unlock()
	if ok {
		return size, nil
	}
	size, err := f.store.Stat(ctx, blobOf(hash, 0).Digest)
	if errors.Is(err, layout.ErrNotFound) {
		size, err = -1, nil
	}
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	f.sizes[hash] = size
	f.mu.Unlock()
	return size, nil
}

func (f *storeFetcher) missing(link links.Link) error {
	return &carton.Error{Kind: carton.ErrLink, Msg: "the store has no blob sha256:" + link.Hash}
}

func blobOf(hash string, size int64) ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: "application/octet-stream",
		Digest:    digestOf(hash),
		Size:      size,
	}
}

// ThinLinks returns the LINKS of a thin carton of an artifact: an address, from
// url, for every raw member below model/ that is no symlink. All else stays
// inside, because loaders fetch linked metadata unverified: content that a
// member outside model/ has too is not linked.
//
// Where nothing can be linked the error wraps carton.ErrLink and carries the
// hint what to do.
func ThinLinks(ctx context.Context, src *Source, url func(digest.Digest) string) (*carton.Links, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, err
	}
	inside := map[string]bool{}
	for _, m := range members {
		if !strings.HasPrefix(m.Path, modelFolder) {
			inside[m.Hash] = true
		}
	}
	links := &carton.Links{URLs: map[string][]string{}}
	bundled := 0
	for _, m := range members {
		switch {
		case !strings.HasPrefix(m.Path, modelFolder) || m.Target != "" || inside[m.Hash]:
		case m.Place == carton.PlaceBlob && m.Size > 0:
			dgst := digestOf(m.Hash)
			links.URLs[m.Hash] = []string{url(dgst)}
		default:
			bundled++
		}
	}
	if len(links.URLs) == 0 {
		return nil, errNothingToLink(bundled)
	}
	return links, nil
}

func errNothingToLink(bundled int) error {
	if bundled == 0 {
		return &carton.Error{Kind: carton.ErrLink, Msg: "the artifact has nothing below model/ that could be linked"}
	}
	err := error(&carton.Error{
		Kind: carton.ErrLink,
		Msg:  fmt.Sprintf("the %d files below model/ lie in tar layers, which no link can reach into", bundled),
	})
	return hint.With(err, "push the carton with raw layers (%s raw), or pull it whole", hint.Layers)
}
