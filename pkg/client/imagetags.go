package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
)

const (
	// imageSuffix follows an artifact's tag in the tag of its image form.
	imageSuffix = layout.ImageTagSuffix
	// maxTag is the longest tag.
	// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests
	maxTag = 128
)

// imageTags returns the tags of the image form: the one that was asked for, or
// one for each tag of the artifact.
func imageTags(loc location.Location, tags []string, own string) ([]string, error) {
	if own != "" {
		err := registry.CheckTag(own)
		switch {
		case err != nil:
			return nil, location.Errorf(own, "is no tag for the image form: %v", err)
		case slices.Contains(tags, own):
			return nil, location.Errorf(own, "is a tag of the artifact, want another for the image form")
		}
		return []string{own}, nil
	}
	if len(tags) == 0 {
		return nil, hint.With(location.Errorf(loc.String(),
			"got a digest, want a tag: the image form has a tag of its own"),
			"write %s:TAG", loc.Untagged())
	}
	var list []string
	for _, tag := range tags {
		name := tag + imageSuffix
		if len(name) > maxTag {
			err := location.Errorf(loc.String(),
				"the tag has %d characters, want at most %d, because that of the image form is %d longer",
				len(tag), maxTag-len(imageSuffix), len(imageSuffix))
			return nil, hint.With(err, "name the image form's tag: %s NAME", hint.ImageTag)
		}
		if slices.Contains(tags, name) {
			err := location.Errorf(loc.String(), "%s is a tag of the artifact and of the image form of %s", name, tag)
			return nil, hint.With(err, "name another tag for the image form: %s NAME", hint.ImageTag)
		}
		list = append(list, name)
	}
	return list, nil
}

// tagged is what a tag points to.
type tagged struct {
	digest digest.Digest
	image  bool   // it is the image form of a carton
	model  string // the hash of its model
}

// lookUp returns what a tag points to, nil where there is no such tag.
func lookUp(ctx context.Context, store layout.Store, tag string) (*tagged, error) {
	desc, err := store.Resolve(ctx, tag)
	if errors.Is(err, layout.ErrNotFound) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, err
	}
	is := &tagged{digest: desc.Digest}
	switch _, m, err := layout.ReadManifest(ctx, store, desc); {
	case err == nil:
		is.image, is.model = convert.IsImage(m), m.Annotations[convert.AnnotationModelHash]
	case errors.Is(err, layout.ErrFormat), errors.Is(err, layout.ErrLimit): // an index, or anything else
	default:
		return nil, fmt.Errorf("look at tag %s: %w", tag, err)
	}
	return is, nil
}

// checkImageTags returns what tags of an image form point to, and refuses to move
// those that point to what is none.
func checkImageTags(ctx context.Context, store layout.Store, tags []string) ([]*tagged, error) {
	var list []*tagged
	for _, tag := range tags {
		is, err := lookUp(ctx, store, tag)
		if err != nil {
			return nil, err
		}
		if is != nil && !is.image {
			err := &layout.Error{
				Object: "tag " + tag, Kind: layout.ErrTagExists,
				Msg: fmt.Sprintf("points to %s, which is no image form of a carton, and stays where it is", is.digest),
			}
			return nil, hint.With(err, "name another tag for the image form: %s NAME", hint.ImageTag)
		}
		list = append(list, is)
	}
	return list, nil
}

// refuseOtherModels refuses to move tags that are image forms of another model.
func refuseOtherModels(tags []string, are []*tagged, modelHash string) error {
	for i, is := range are {
		if is != nil && is.model != modelHash {
			err := &layout.Error{
				Object: "tag " + tags[i], Kind: layout.ErrTagExists,
				Msg: "is the image form of another model",
			}
			return hint.With(err, "choose another tag (%s NAME), or leave out %s", hint.ImageTag, hint.NoClobber)
		}
	}
	return nil
}

// refuseDrift refuses to move tags whose image form would be left behind with
// another model.
func (p *push) refuseDrift(ctx context.Context) error {
	left, err := leftBehind(ctx, p.site.store, p.tags, p.modelHash())
	if err != nil || len(left) == 0 {
		return err
	}
	err = &layout.Error{
		Object: "tag " + left[0], Kind: layout.ErrTagExists,
		Msg: fmt.Sprintf("is the image form of another model, and %s would move away from it",
			strings.TrimSuffix(left[0], imageSuffix)),
	}
	err = hint.With(err, "%s leaves it as it is", hint.LeaveImage)
	switch {
	case p.verb == copyVerb:
		return hint.With(err, "%s takes the source's image form along, where it has one", hint.Recursive)
	case p.opts.Mapping.Compat == convert.CompatImage:
		return err // an image form goes beside an artifact
	}
	return hint.With(err, "%s moves both", hint.Image)
}

// leftBehind returns the tags that are image forms of other models, beside tags
// that are about to move. Who may not look is not told of them.
func leftBehind(ctx context.Context, store layout.Store, tags []string, modelHash string) ([]string, error) {
	var left []string
	for _, tag := range tags {
		if len(tag)+len(imageSuffix) > maxTag {
			continue
		}
		is, err := lookUp(ctx, store, tag+imageSuffix)
		switch {
		case errors.Is(err, registry.ErrUnauthorized), errors.Is(err, registry.ErrDenied):
		case err != nil:
			return nil, err
		case is != nil && is.image && is.model != modelHash:
			left = append(left, tag+imageSuffix)
		}
	}
	return left, nil
}
