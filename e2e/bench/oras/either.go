package main

import (
	"context"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/content/memory"
)

// either is what the command copies from: the image manifest is in memory and
// the files are where they are.
type either struct {
	manifests *memory.Store
	files     *file.Store
}

// Fetch implements content.Fetcher.
func (e either) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	if ok, err := e.manifests.Exists(ctx, d); err != nil || ok {
		return e.manifests.Fetch(ctx, d)
	}
	return e.files.Fetch(ctx, d)
}

// Exists implements content.ReadOnlyStorage.
func (e either) Exists(ctx context.Context, d ocispec.Descriptor) (bool, error) {
	if ok, err := e.manifests.Exists(ctx, d); err != nil || ok {
		return ok, err
	}
	return e.files.Exists(ctx, d)
}

// Resolve implements content.Resolver.
func (e either) Resolve(ctx context.Context, ref string) (ocispec.Descriptor, error) {
	return e.manifests.Resolve(ctx, ref)
}
