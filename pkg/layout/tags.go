package layout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
)

// maxTagsAsked is how many tags of one place are asked what they point to.
const maxTagsAsked = 1000

// TagsOf returns the tags that point to a manifest, in the order of the place. It asks
// for each what it points to: whole is false where there are too many to ask, or the
// place can't list them. Tags that lists of referrers are kept under are not asked.
func TagsOf(ctx context.Context, f Fetcher, dgst digest.Digest) (tags []string, whole bool, err error) {
	var all []string
	for tag, err := range f.Tags(ctx) {
		switch {
		case errors.Is(err, ErrUnsupported):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		case IsReferrersTag(tag):
			continue
		case len(all) == maxTagsAsked:
			return nil, false, nil
		}
		all = append(all, tag)
	}
	points := make([]bool, len(all))
	err = eachAtOnce(ctx, len(all), func(ctx context.Context, i int) error {
		desc, err := f.Resolve(ctx, all[i])
		points[i] = err == nil && desc.Digest == dgst
		return err // one that is gone meanwhile, or broken, points nowhere
	})
	if err != nil {
		return nil, false, err
	}
	for i, tag := range all {
		if points[i] {
			tags = append(tags, tag)
		}
	}
	return tags, true, nil
}

// CheckUntagged is ErrTagExists where a tag of the place points to a manifest, or may
// because nobody can ask them all.
func CheckUntagged(ctx context.Context, f Fetcher, dgst digest.Digest) error {
	tags, whole, err := TagsOf(ctx, f, dgst)
	switch {
	case err != nil:
		return err
	case len(tags) > 0:
		return Tagged(dgst, tags)
	case !whole:
		return errorf(ErrTagExists, string(dgst), "may have tags: there are too many to ask, or they can't be listed")
	}
	return nil
}

// Tagged returns the error, which wraps ErrTagExists, for a manifest that tags point to.
func Tagged(dgst digest.Digest, tags []string) error {
	var names []string
	for _, tag := range tags[:min(len(tags), maxListed)] {
		names = append(names, quote(tag))
	}
	if n := len(tags) - maxListed; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return errorf(ErrTagExists, string(dgst), "has the tags %s", strings.Join(names, ", "))
}
