package layout

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// tagPattern is what a tag of a folder may be: what registries take, and the
// names with slashes, colons and the like that the specification allows here.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/:@+-]*$`)

// isTag counts the length itself: a pattern that does costs every start of the
// program a millisecond.
func isTag(tag string) bool { return len(tag) <= 255 && tagPattern.MatchString(tag) }

// Resolve implements [Fetcher]. A digest is also found where no entry of
// index.json lists it, as long as the folder holds the manifest.
func (d *Dir) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	return resolveIn(ctx, d, reference)
}

// ResolveManifest implements [Fetcher].
func (d *Dir) ResolveManifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error) {
	return resolveManifest(ctx, d, reference)
}

// FetchManifest implements [Fetcher].
func (d *Dir) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return ReadBlob(ctx, d, desc, MaxManifestBytes)
}

// PutManifest implements [Store]. The blobs that an image manifest lists must be
// there.
func (d *Dir) PutManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, opts PutOptions) error {
	for _, tag := range opts.Tags {
		if !isTag(tag) || CheckDigest(digest.Digest(tag)) == nil {
			return fmt.Errorf("tag %s: %w", quote(tag), fs.ErrInvalid)
		}
	}
	if err := checkContent(desc, content); err != nil {
		return err
	}
	if err := d.complete(ctx, desc, content); err != nil {
		return err
	}
	if err := d.Push(ctx, manifestLayer(desc, content), Watch{}); err != nil {
		return err
	}
	return d.write(ctx, ocispec.ImageIndexFile, true, func() ([]byte, error) {
		// Once more: whoever deleted something meanwhile knew nothing of this manifest.
		if err := d.complete(ctx, desc, content); err != nil {
			return nil, err
		}
		if _, err := d.Stat(ctx, desc.Digest); err != nil {
			return nil, err
		}
		if opts.NoClobber {
			if err := CheckTags(ctx, d, desc.Digest, opts.Tags...); err != nil {
				return nil, err
			}
		}
		index, err := d.readIndex()
		if err != nil {
			return nil, err
		}
		index.put(desc, opts.Tags)
		return jsonstream.Marshal(index, "")
	})
}

// manifestLayer is an image manifest as a blob.
func manifestLayer(desc ocispec.Descriptor, content []byte) Layer {
	return Layer{Descriptor: desc, Open: OpenBytes(content)}
}

// complete wants every blob of an image manifest to be in the folder, and no
// more of it: a process that is killed right behind a blob's rename leaves its
// journal.
func (d *Dir) complete(ctx context.Context, desc ocispec.Descriptor, content []byte) error {
	if desc.MediaType != ocispec.MediaTypeImageManifest {
		return nil
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return &Error{Object: "image manifest", Kind: ErrFormat, Err: err}
	}
	for _, b := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
		size, err := d.Stat(ctx, b.Digest)
		if err != nil {
			return inManifest(err)
		}
		if size != b.Size {
			return errorf(ErrDigest, string(b.Digest), "is %d bytes in %s, want %d", size, quote(d.path), b.Size)
		}
		place.Tidy(filepath.Join(d.path, blobPath(b.Digest)))
	}
	place.Tidy(filepath.Join(d.path, ocispec.ImageLayoutFile))
	return nil
}
