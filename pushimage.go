package cartonoci

import (
	"context"
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// PushedImage is the image form of a carton that was pushed.
type PushedImage struct {
	// Reference is where the image is.
	Reference string `json:"reference"`
	// Tags are all tags that point to it, where there are several.
	Tags []string `json:"tags,omitempty"`
	// Digest is its image manifest's.
	Digest digest.Digest `json:"digest"`
	// Unshared is the size in bytes of the blobs that the artifact does not have.
	Unshared int64 `json:"-"`
	// Left are the tags that an image form would have without PushOptions.ImageTag,
	// and that stay those of another model.
	Left []string `json:"-"`
}

// newPushedImage says what the image form will be.
func newPushedImage(loc Location, tags []string, image, artifact *layout.Artifact) *PushedImage {
	loc.Tag, loc.Digest = tags[0], ""
	p := &PushedImage{Reference: loc.String(), Digest: image.Digest}
	if len(tags) > 1 {
		p.Tags = tags
	}
	for _, l := range onlyIn(image, artifact).Layers {
		p.Unshared += l.Size
	}
	p.Unshared += image.Config.Size
	return p
}

// onlyIn returns an artifact with only those layers that another does not have.
func onlyIn(a, other *layout.Artifact) *layout.Artifact {
	has := map[digest.Digest]bool{}
	for _, l := range other.Layers {
		has[l.Digest] = true
	}
	own := *a
	own.Layers = nil
	for _, l := range a.Layers {
		if !has[l.Digest] {
			own.Layers = append(own.Layers, l)
		}
	}
	return &own
}

// sendBoth pushes the artifact and its image form. The order matters where it
// stops half-way: all content first, then the tags of the image form, and the
// artifact's last, so that who reads it finds an image form that is as new.
func (p *push) sendBoth(ctx context.Context, forms *convert.Forms, result *PushResult) error {
	store, art := p.site.store, forms.Artifact
	if err := layout.CheckArtifact(ctx, store, forms.Image); err != nil {
		return fmt.Errorf("image form: %w", err)
	}
	opts := layout.PushOptions{Concurrency: p.opts.Concurrency, Progress: p.opts.Progress}
	pushed, err := layout.Push(ctx, store, art, opts)
	if err != nil {
		return err
	}
	if p.opts.NoClobber {
		if err := refuseClobber(ctx, store, p.tags, art.Descriptor); err != nil {
			return err
		}
	}
	opts.Tags, opts.NoClobber = p.imageTags, p.opts.NoClobber
	image, err := layout.Push(ctx, store, onlyIn(forms.Image, art), opts)
	if err != nil {
		return fmt.Errorf("image form: %w", err)
	}
	if err := store.PutManifest(ctx, art.Descriptor, art.Manifest, p.tags...); err != nil {
		return fmt.Errorf("push image manifest: %w", err)
	}
	result.took(pushed)
	result.BytesUploaded += image.BytesUploaded
	result.BytesResumed += image.BytesResumed
	return nil
}

// checkClobber refuses to move any of both forms' tags before anything is sent.
func (p *push) checkClobber(ctx context.Context, forms *convert.Forms) error {
	if err := refuseClobber(ctx, p.site.store, p.tags, forms.Artifact.Descriptor); err != nil {
		return err
	}
	return refuseClobber(ctx, p.site.store, p.imageTags, forms.Image.Descriptor)
}

// explainRefusal says what an image manifest may have been refused for, and what
// can be done about it.
func explainRefusal(err error, mapping convert.Options) error {
	if !errors.Is(err, registry.ErrManifest) {
		return err
	}
	switch mapping.Compat {
	case convert.CompatImage:
		return fmt.Errorf("the registry does not even take an image: %w", err)
	case convert.CompatImageConfig:
		err = fmt.Errorf("the registry takes no such image manifest, even with the config of an image: %w", err)
		return hint.With(err, "--compat %s pushes the image form alone, whose layers are an image's too", convert.CompatImage)
	}
	err = fmt.Errorf("the registry takes no such image manifest, most likely for its artifactType or media types: %w", err)
	return hint.With(err, "--compat %s pushes what such registries take", convert.CompatImageConfig)
}

// descriptorOf returns the descriptor of a layer that a push is asked about.
func descriptorOf(l PushedLayer) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size}
}
