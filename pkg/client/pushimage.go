package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
)

// PushedImage is the image form of a carton that was pushed.
type PushedImage struct {
	// Reference is where the image is.
	Reference string `json:"reference"`
	// Tags are all tags that point to it, where there are several.
	Tags []string `json:"tags,omitempty"`
	// Digest is its image manifest's. That of a copy's is known when all was read.
	Digest digest.Digest `json:"digest,omitempty"`
	// Shared: the artifact's tar layers are the image form's.
	Shared bool `json:"-"`
	// Unshared is the size in bytes of the blobs that the artifact does not have.
	Unshared int64 `json:"-"`
	// Left are the tags that an image form would have without PushOptions.ImageTag,
	// and that stay those of another model.
	Left []string `json:"-"`
}

// sharesLayers reports whether an image has nothing to be sent that is large but what
// the artifact has.
func sharesLayers(art, image *layout.Artifact) bool {
	return len(image.Layers) > 1 && slices.ContainsFunc(image.Layers, func(l layout.Layer) bool {
		return slices.ContainsFunc(art.Layers, func(a layout.Layer) bool { return a.Digest == l.Digest })
	})
}

// newPushedImage says what the image form will be.
func newPushedImage(loc location.Location, tags []string, forms *convert.Forms) *PushedImage {
	loc.Tag, loc.Digest = tags[0], ""
	p := &PushedImage{
		Reference: loc.String(), Digest: forms.Image.Digest, Shared: forms.Shared, Unshared: forms.Image.Config.Size,
	}
	if len(tags) > 1 {
		p.Tags = tags
	}
	shared := map[digest.Digest]bool{}
	for _, l := range forms.Artifact.Layers {
		shared[l.Digest] = true
	}
	for _, l := range forms.Image.Layers {
		if !shared[l.Digest] {
			p.Unshared += l.Size
		}
	}
	return p
}

// checkImage refuses, before anything is sent, an image form that the place does
// not take, and to move any of both forms' tags where that was forbidden.
func (p *push) checkImage(ctx context.Context, forms *convert.Forms) error {
	if forms.Image == nil {
		return nil
	}
	if err := p.site.store.CheckArtifact(ctx, forms.Image); err != nil {
		return fmt.Errorf("image form: %w", err)
	}
	if !p.opts.NoClobber {
		return nil
	}
	err := layout.CheckTags(ctx, p.site.store, forms.Artifact.Digest, p.tags...)
	if err != nil {
		return err
	}
	if forms.Image.Complete != nil { // its digest is not known yet
		return refuseOtherModels(p.imageTags, p.images, p.modelHash())
	}
	for i, tag := range p.imageTags {
		if is := p.images[i]; is == nil || is.digest == forms.Image.Digest {
			continue
		}
		if err := layout.CheckTags(ctx, p.site.store, forms.Image.Digest, tag); err != nil {
			return err
		}
	}
	return nil
}

// explainRefusal says what an image manifest may have been refused for, and what
// can be done about it.
func (p *push) explainRefusal(err error) error {
	if !errors.Is(err, registry.ErrManifest) {
		return err
	}
	switch mapping := p.opts.Mapping; {
	case p.verb == copyVerb:
		err = fmt.Errorf("the registry takes no such manifest, most likely for its artifactType or media types: %w",
			err)
		return hint.With(err, "%s %s %s makes another artifact of it, with another digest, which such registries take",
			hint.Push, hint.Compat, convert.CompatImageConfig)
	case mapping.Compat == convert.CompatImage:
		return fmt.Errorf("the registry does not even take an image: %w", err)
	case mapping.Compat == convert.CompatImageConfig:
		err = fmt.Errorf("the registry takes no such image manifest, even with the config of an image: %w", err)
		return hint.With(err, "%s %s pushes the image form alone, whose layers are an image's too", hint.Compat,
			convert.CompatImage)
	}
	err = fmt.Errorf("the registry takes no such image manifest, most likely for its artifactType or media types: %w",
		err)
	return hint.With(err, "%s %s pushes what such registries take", hint.Compat, convert.CompatImageConfig)
}
