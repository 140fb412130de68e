package layout

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
)

// Tags implements [Fetcher] where the target lists its tags, as oras-go's
// registry.TagLister does.
func (s *target) Tags(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lister, ok := s.t.(interface {
			Tags(ctx context.Context, last string, fn func(tags []string) error) error
		})
		if !ok {
			yield("", fmt.Errorf("list tags: the target can't: %w", ErrUnsupported))
			return
		}
		enough := errors.New("enough")
		n := 0
		err := lister.Tags(ctx, "", func(tags []string) error {
			for _, tag := range tags {
				if n++; n > MaxTags {
					return errorf(ErrLimit, "", "has more than %d tags", MaxTags)
				}
				if CheckDigest(digest.Digest(tag)) != nil && !yield(tag, nil) {
					return enough
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			yield("", err)
		}
	}
}

// Referrers implements [Fetcher]: from the target's own graph where it has one, else
// from the index that PutManifest keeps.
func (s *target) Referrers(
	ctx context.Context, subject ocispec.Descriptor, artifactType string,
) ([]ocispec.Descriptor, error) {
	list := ReferrerList{ArtifactType: artifactType}
	finder, ok := s.t.(content.PredecessorFinder)
	if !ok {
		_, index, err := s.referrersIndex(ctx, subject)
		if index == nil || err != nil {
			return nil, err
		}
		x, err := ParseIndex(index)
		if err == nil {
			err = list.Add(x.Manifests...)
		}
		return list.All, err
	}
	above, err := finder.Predecessors(ctx, subject)
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return nil, err
	}
	for _, desc := range above { // indexes that list the subject are among them
		b, err := s.FetchManifest(ctx, desc)
		if err != nil && !isContent(err) {
			return nil, err
		}
		named, listed := ReferrerOf(desc, b)
		if err != nil || named == nil || named.Digest != subject.Digest {
			continue
		}
		if err := list.Add(listed); err != nil {
			return nil, err
		}
	}
	return list.All, nil
}

// referrersIndex returns the index that lists a manifest's referrers, nil for none.
func (s *target) referrersIndex(ctx context.Context, subject ocispec.Descriptor) (tag string, index []byte, err error) {
	if err := CheckDigest(subject.Digest); err != nil {
		return "", nil, err
	}
	tag = ReferrersTag(subject.Digest)
	desc, err := s.t.Resolve(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return tag, nil, nil
	}
	if err == nil {
		index, err = s.FetchManifest(ctx, desc)
	}
	return tag, index, err
}

// listReferrer lists a manifest with the subject that it names, where the target has no
// graph to find it in.
func (s *target) listReferrer(ctx context.Context, desc ocispec.Descriptor, manifest []byte) error {
	subject, listed := ReferrerOf(desc, manifest)
	if _, ok := s.t.(content.PredecessorFinder); ok || subject == nil {
		return nil
	}
	s.listing.Lock()
	defer s.listing.Unlock()
	tag, index, err := s.referrersIndex(ctx, *subject)
	if err != nil {
		return err
	}
	index, changed, err := AddReferrers(index, listed)
	if err != nil || !changed {
		return err
	}
	at := ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(index),
		Size: int64(len(index)),
	}
	if err := s.Push(ctx, manifestLayer(at, index), Watch{}); err != nil {
		return err
	}
	return s.t.Tag(ctx, at, tag)
}

// Delete implements [Store] where the target can, as oras-go's content.Untagger and
// content.Deleter do. What goes with a manifest is the target's affair.
func (s *target) Delete(ctx context.Context, reference string, opts DeleteOptions) error {
	none := fmt.Errorf("delete %s: the target can't: %w", quote(reference), ErrUnsupported)
	if CheckDigest(digest.Digest(reference)) != nil {
		t, ok := s.t.(content.Untagger)
		if !ok {
			return none
		}
		return t.Untag(ctx, reference)
	}
	t, ok := s.t.(content.Deleter)
	if !ok {
		return none
	}
	desc, err := s.t.Resolve(ctx, reference)
	if err != nil {
		return err
	}
	if opts.KeepTagged {
		if err := CheckUntagged(ctx, s, desc.Digest); err != nil {
			return err
		}
	}
	if err := t.Delete(ctx, desc); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.pushed) // the target may have removed more
	return nil
}
