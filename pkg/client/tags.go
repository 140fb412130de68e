package client

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// TagOptions say how tags are moved. The zero value moves them whatever they point to.
type TagOptions struct {
	// NoClobber refuses to move a tag that points to something else.
	NoClobber bool
}

// TagResult says what tags point to. Its JSON is what `tag --format json` prints.
type TagResult struct {
	// Reference is what was asked for.
	Reference string `json:"reference"`
	// Digest is the manifest's, which the tags point to now.
	Digest digest.Digest `json:"digest"`
	// MediaType and Size, in bytes, make the digest a descriptor.
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
	// Tags are those that were set.
	Tags []string `json:"tags"`
	// ImagesLeft are tags of image forms that stand beside the tags, named after them, and
	// are of another model: they were left as they are.
	ImagesLeft []string `json:"imagesLeft,omitempty"`
	// ImageUntagged is the tag of the image form of Reference that the new tags have no
	// counterpart of, "" for none.
	ImageUntagged string `json:"imageUntagged,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// Tag points tags to what ref stands for, an artifact or anything else, in the same
// repository or image layout. No blob moves, and the digest is the same.
func (c *Client) Tag(ctx context.Context, ref string, tags []string, opts TagOptions) (*TagResult, error) {
	start := time.Now()
	loc, err := parseArtifact(ref)
	if err != nil {
		return nil, fmt.Errorf("tag: %w", err)
	}
	for _, tag := range tags {
		if registry.CheckTag(tag) == nil {
			continue
		}
		err := location.Errorf(tag, "is no tag, want at most %d letters, digits and ._-, of which no . or - first",
			maxTag)
		if other, bad := location.Parse(tag); bad == nil && other.IsArtifact() && other.Untagged() == loc.Untagged() &&
			other.Tag != "" {
			return nil, hint.With(fmt.Errorf("tag: %w", err), "write the tag alone: %s", other.Tag)
		}
		if strings.ContainsRune(tag, '/') {
			err = hint.With(err, "a tag is set beside what it points to; to another repository: %s", hint.Copy)
		}
		return nil, fmt.Errorf("tag: %w", err)
	}
	s, desc, content, err := c.resolve(ctx, loc, true)
	if err != nil {
		return nil, fmt.Errorf("tag %s: %w", loc, err)
	}
	result := &TagResult{
		Reference: s.loc.String(), Digest: desc.Digest, MediaType: desc.MediaType, Size: desc.Size,
		Tags: tags,
	}
	if err := result.lookAtImages(ctx, s, content); err != nil {
		return nil, fmt.Errorf("tag %s: %w", loc, err)
	}
	if err := s.store.PutManifest(ctx, desc, content,
		layout.PutOptions{Tags: tags, NoClobber: opts.NoClobber}); err != nil {
		return nil, fmt.Errorf("tag %s: %w", loc, err)
	}
	result.Seconds = seconds(start)
	return result, nil
}

// lookAtImages says which image forms stand beside the tags or the reference.
func (r *TagResult) lookAtImages(ctx context.Context, s *site, content []byte) error {
	m, err := layout.ParseManifest(content)
	if err != nil || convert.IsImage(m) || m.Annotations[convert.AnnotationModelHash] == "" {
		return nil //nolint:nilerr // what is no carton has no image form
	}
	model := m.Annotations[convert.AnnotationModelHash]
	if r.ImagesLeft, err = leftBehind(ctx, s.store, r.Tags, model); err != nil {
		return err
	}
	own := s.loc.Tag + imageSuffix
	if s.loc.Tag == "" || len(own) > maxTag {
		return nil
	}
	switch is, err := lookUp(ctx, s.store, own); {
	case isDenied(err):
	case err != nil:
		return err
	case is != nil && is.image && is.model == model:
		r.ImageUntagged = own
	}
	return nil
}

// Tags lists the tags of a repository or an image layout, as [layout.Fetcher] does.
// Which artifact ref names counts for nothing. An error ends the list.
func (c *Client) Tags(ctx context.Context, ref string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		loc, err := location.Parse(ref)
		if err != nil {
			yield("", err)
			return
		}
		s, err := c.site(ctx, loc, reading)
		if err != nil {
			yield("", err)
			return
		}
		for tag, err := range s.store.Tags(ctx) {
			if !yield(tag, err) || err != nil {
				return
			}
		}
	}
}

// Manifest returns the bytes of the manifest that a reference stands for, of whatever
// kind it is, and their descriptor.
func (c *Client) Manifest(ctx context.Context, ref string) (ocispec.Descriptor, []byte, error) {
	loc, err := parseArtifact(ref)
	if err != nil {
		return ocispec.Descriptor{}, nil, fmt.Errorf("manifest: %w", err)
	}
	_, desc, content, err := c.resolve(ctx, loc, true)
	if err != nil {
		return ocispec.Descriptor{}, nil, fmt.Errorf("manifest %s: %w", loc, err)
	}
	return desc, content, nil
}
