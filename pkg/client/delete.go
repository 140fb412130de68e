package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// DeleteOptions say what may be deleted. The zero value deletes a tag, or a manifest that
// no tag points to.
type DeleteOptions struct {
	// Tagged deletes a manifest by its digest although tags point to it: they go, too.
	Tagged bool
	// DryRun finds out what would be deleted, and deletes nothing.
	DryRun bool
	// Planned, which may be nil, is called when it is known what goes and what stays. Its
	// error ends the call, and nothing is deleted.
	Planned func(*DeleteResult) error
}

// DeleteResult says what was deleted. Its JSON is what `rm --format json` prints.
type DeleteResult struct {
	// Reference is what was asked for.
	Reference string `json:"reference"`
	// Digest is the manifest's that the reference stood for.
	Digest digest.Digest `json:"digest"`
	// Tags are, of a tag that is deleted, the others that point to the manifest and keep
	// it; of a digest, those that go with it.
	Tags []string `json:"tags"`
	// TagsUnknown: the place has too many tags to ask, or can't list them.
	TagsUnknown bool `json:"tagsUnknown,omitempty"`
	// Manifest: the manifest itself is deleted. A registry keeps one that has lost its
	// last tag until it cleans up; an image layout does not, and its blobs go where no
	// other manifest needs them.
	Manifest bool `json:"manifest"`
	// Image is the tag of the image form, which stays; "" for none.
	Image string `json:"image,omitempty"`
	// Referrers are manifests that name this one as their subject, signatures for
	// example. They stay, and name what nothing else keeps.
	Referrers []ReferrerInfo `json:"referrers"`
	// DryRun: nothing was deleted.
	DryRun bool `json:"dryRun,omitempty"`
}

// Delete removes a tag; or, by its digest, a manifest that no tag points to. What is
// not there is layout.ErrNotFound, a manifest with tags layout.ErrTagExists, and what a
// registry deletes for nobody layout.ErrUnsupported.
func (c *Client) Delete(ctx context.Context, ref string, opts DeleteOptions) (*DeleteResult, error) {
	loc, err := parseArtifact(ref)
	if err == nil && loc.Reference() == "" {
		err = location.Errorf(loc.String(), "names all of a repository, want one tag or digest of it")
	}
	if err == nil && loc.Tag != "" && loc.Digest != "" {
		err = location.Errorf(loc.String(), "names a tag and a digest, want one of them")
	}
	if err != nil {
		return nil, fmt.Errorf("rm: %w", err)
	}
	result, err := c.delete(ctx, loc, opts)
	if err != nil {
		return nil, fmt.Errorf("rm %s: %w", loc, err)
	}
	return result, nil
}

func (c *Client) delete(ctx context.Context, loc location.Location, opts DeleteOptions) (*DeleteResult, error) {
	s, err := c.site(ctx, loc, reading)
	if err != nil {
		return nil, err
	}
	if loc.Kind == location.KindArchive { // which says why not
		return nil, s.store.Delete(ctx, loc.Reference(), layout.DeleteOptions{})
	}
	desc, err := s.store.Resolve(ctx, loc.Reference())
	if err != nil {
		return nil, hintToTags(err, loc)
	}
	result := &DeleteResult{Reference: loc.String(), Digest: desc.Digest, DryRun: opts.DryRun}
	if err := result.plan(ctx, s, desc); err != nil {
		return nil, err
	}
	if loc.Tag == "" && len(result.Tags) > 0 && !opts.Tagged {
		return nil, result.refuseTagged(loc)
	}
	if loc.Tag == "" && result.TagsUnknown && !opts.Tagged {
		if err := layout.CheckUntagged(ctx, s.store, desc.Digest); err != nil {
			return nil, hint.With(err, "%s deletes it with whatever tags it has", hint.DeleteTagged)
		}
	}
	if opts.Planned != nil {
		if err := opts.Planned(result); err != nil {
			return nil, err
		}
	}
	if opts.DryRun {
		return result, nil
	}
	if loc.Tag == "" {
		err := s.store.Delete(ctx, loc.Reference(), layout.DeleteOptions{KeepTagged: !opts.Tagged})
		if err == nil {
			err = s.deleteDangling(ctx, result)
		}
		return result, s.explain(err, result)
	}
	if err := s.explain(s.store.Delete(ctx, loc.Tag, layout.DeleteOptions{}), result); err != nil {
		return nil, err
	}
	if result.Manifest {
		// Unless somebody has tagged it meanwhile, or an index lists it.
		err = s.store.Delete(ctx, string(desc.Digest), layout.DeleteOptions{KeepTagged: true})
		if errors.Is(err, layout.ErrTagExists) || errors.Is(err, layout.ErrUnsupported) ||
			errors.Is(err, layout.ErrNotFound) {
			result.Manifest, err = false, nil
		}
	}
	return result, err
}

// deleteDangling deletes the tags of a manifest that is gone: some registries leave them.
func (s *site) deleteDangling(ctx context.Context, r *DeleteResult) error {
	for _, tag := range r.Tags {
		desc, err := s.store.Resolve(ctx, tag)
		if err != nil || desc.Digest != r.Digest { // as it should be, or somebody has set it anew
			continue
		}
		if err := s.store.Delete(ctx, tag, layout.DeleteOptions{}); err != nil && !errors.Is(err, layout.ErrNotFound) {
			return fmt.Errorf("the artifact is deleted, and tag %s points to nothing: %w", tag, err)
		}
	}
	return nil
}

// plan finds out what goes and what stays.
func (r *DeleteResult) plan(ctx context.Context, s *site, desc ocispec.Descriptor) error {
	tags, whole, err := layout.TagsOf(ctx, s.store, desc.Digest)
	// listing may need more rights than deleting
	if err != nil && !isDenied(err) && !errors.Is(err, layout.ErrNotFound) {
		return err
	}
	r.Tags = slices.DeleteFunc(append([]string{}, tags...), func(tag string) bool { return tag == s.loc.Tag })
	r.TagsUnknown = !whole
	r.Manifest = s.loc.Tag == "" || s.loc.Kind == location.KindLayout && whole && len(r.Tags) == 0
	r.Referrers = []ReferrerInfo{}
	if listed, err := s.store.Referrers(ctx, desc, ""); err == nil { // else they are not told of
		for _, l := range listed {
			r.Referrers = append(r.Referrers, newReferrerInfo(l))
		}
	}
	if image := s.loc.Tag + imageSuffix; s.loc.Tag != "" && len(image) <= maxTag {
		if is, err := lookUp(ctx, s.store, image); err == nil && is != nil && is.image {
			r.Image = image
		}
	}
	return nil
}

// refuseTagged is the error for a manifest that tags point to.
func (r *DeleteResult) refuseTagged(loc location.Location) error {
	at := loc.Untagged()
	at.Tag = r.Tags[0]
	err := hint.With(layout.Tagged(r.Digest, r.Tags), "%s deletes it with all its tags", hint.DeleteTagged)
	return hint.With(err, "%s %s takes one tag", hint.Delete, at)
}

// explain adds to a registry's refusal what else can be done.
func (s *site) explain(err error, r *DeleteResult) error {
	if !errors.Is(err, layout.ErrUnsupported) || s.loc.Kind != location.KindRegistry {
		return err
	}
	if s.loc.Tag == "" {
		return hint.With(err, "this registry deletes nothing through its API: use its own page or tool, or switch "+
			"deleting on (distribution: storage.delete.enabled)")
	}
	at := s.loc.Untagged()
	at.Digest = r.Digest
	if len(r.Tags) == 0 && !r.TagsUnknown {
		return hint.With(err, "many registries delete manifests and no tags: %s %s %s deletes what the tag points "+
			"to, and no other tag does",
			hint.Delete, at, hint.DeleteTagged)
	}
	return hint.With(err, "many registries delete manifests and no tags: %s %s %s deletes what the tag points to, "+
		"and every other tag that does",
		hint.Delete, at, hint.DeleteTagged)
}

func isDenied(err error) bool {
	return errors.Is(err, registry.ErrUnauthorized) || errors.Is(err, registry.ErrDenied)
}
