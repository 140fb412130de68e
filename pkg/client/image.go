package client

import (
	"context"
	"fmt"
	"time"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/opencontainers/go-digest"
)

// ImageOptions say how the image form of a stored artifact is made. The zero
// value tags it with the artifact's tag, followed by "-image".
type ImageOptions struct {
	// Tag is the image form's tag; "" is the artifact's, followed by "-image".
	Tag string
	// Subject makes the image manifest refer to the artifact's, so that registries
	// list it with that one.
	Subject bool
	// NoClobber refuses to move a tag that points to something else.
	NoClobber bool
	// DryRun finds out what would be sent, and sends nothing.
	DryRun bool
	// Concurrency is how many layers travel at once; 0 is 8.
	Concurrency int
	// Progress, which may be nil, is told what happens to each transfer.
	Progress progress.Func
}

// ImageResult says what was made. Its JSON is what `image --format json` prints.
type ImageResult struct {
	// Reference is where the image form is.
	Reference string `json:"reference"`
	// Digest is its image manifest's; "" after a dry run, which reads nothing of
	// what decides it.
	Digest digest.Digest `json:"digest,omitempty"`
	// Artifact is the artifact that it was made of.
	Artifact struct {
		Reference string        `json:"reference"`
		Digest    digest.Digest `json:"digest"`
	} `json:"artifact"`
	// ModelHash is the model's identity, in lower-case hex.
	ModelHash string `json:"modelHash"`
	// Layers is how many layers the image has.
	Layers int `json:"layers"`
	// Shared: all layers but one small one are the artifact's own.
	Shared bool `json:"shared"`
	// Size is that of all layers, in bytes.
	Size int64 `json:"size"`
	// BytesUploaded and BytesDownloaded count the bytes of blobs that travelled.
	BytesUploaded   int64 `json:"bytesUploaded"`
	BytesDownloaded int64 `json:"bytesDownloaded"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// DryRun: nothing was sent.
	DryRun bool `json:"dryRun,omitempty"`
}

// Image makes the image form of an artifact in a registry or image layout, in
// the same repository. Tar layers within the limit of images are shared: they are
// read, whole, because nothing becomes an image that was not checked against
// MANIFEST, and only manifests and a small layer are sent. Else every member
// travels once from the registry and once to it. Either way through memory and
// never to disk; where the registry takes no chunks, new layers are read once
// more, to learn digests.
//
// A member that no image can hold is convert.ErrNoImage.
func (c *Client) Image(ctx context.Context, ref string, opts ImageOptions) (*ImageResult, error) {
	start := time.Now()
	loc, err := parseArtifact(ref)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	var tags []string
	if loc.Reference() == "" {
		loc.Tag = defaultTag
	}
	if loc.Tag != "" {
		tags = []string{loc.Tag}
	}
	if tags, err = imageTags(loc, tags, opts.Tag); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	result, err := c.call().image(ctx, loc, tags, opts)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", loc, err)
	}
	result.Seconds = seconds(start)
	return result, nil
}

func (c *call) image(
	ctx context.Context, loc location.Location, tags []string, opts ImageOptions,
) (*ImageResult, error) {
	src, err := c.open(ctx, loc, OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	store := src.site.store
	forms, err := convert.Image(ctx, src.artifact, convert.Options{ImageSubject: opts.Subject})
	if err != nil {
		return nil, err
	}
	at := src.loc.Untagged()
	at.Tag = tags[0]
	result := &ImageResult{
		Reference: at.String(), ModelHash: src.Manifest().ModelHash(), Shared: forms.Shared, DryRun: opts.DryRun,
	}
	result.Artifact.Reference, result.Artifact.Digest = src.loc.String(), src.artifact.Descriptor().Digest
	for _, l := range forms.Image.Layers {
		result.Layers++
		result.Size += l.Size
	}
	if err := store.CheckArtifact(ctx, forms.Image); err != nil {
		return nil, err
	}
	are, err := checkImageTags(ctx, store, tags)
	if err == nil && opts.NoClobber {
		err = refuseOtherModels(tags, are, result.ModelHash)
	}
	if err != nil {
		return nil, err
	}
	if !opts.DryRun {
		pushed, err := layout.Push(ctx, store, forms.Image, layout.PushOptions{
			Tags: tags, NoClobber: opts.NoClobber, Concurrency: opts.Concurrency, Progress: opts.Progress,
		})
		if err != nil {
			return nil, err
		}
		result.Digest, result.BytesUploaded = pushed.Descriptor.Digest, pushed.BytesUploaded
	}
	result.BytesDownloaded = c.received.Load()
	return result, nil
}
