package layout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

const (
	// maxReferrerBytes is how much of all referrers' manifests is held.
	maxReferrerBytes = 64 << 20
	// askedAtOnce is how much a place is asked at once.
	askedAtOnce = 8
)

// Referrer is a manifest that names a subject: it was fetched, and does.
type Referrer struct {
	// Descriptor has the artifactType and annotations that the manifest itself has.
	ocispec.Descriptor
	// Manifest is nil where the referrer is an index.
	Manifest *ocispec.Manifest
}

// ReadReferrers fetches what is listed as naming subject, several at once, and returns
// those that do, in the order of the list; with an artifactType those of that type by
// their own word. What is left out of the list is in left, an error each that says
// why: it isn't there, is no manifest, or names another subject. Any other error, of
// the network for example, ends it.
func ReadReferrers(
	ctx context.Context, f Fetcher, subject ocispec.Descriptor, artifactType string,
) (found []Referrer, left []error, err error) {
	claims, err := f.Referrers(ctx, subject, artifactType)
	if err != nil {
		return nil, nil, err
	}
	size := int64(0)
	for _, claim := range claims {
		if claim.Size > 0 && claim.Size <= MaxManifestBytes { // no other is fetched
			size += claim.Size
		}
	}
	if size > maxReferrerBytes {
		return nil, nil, errorf(ErrLimit, string(subject.Digest), "has referrers of more than %d bytes",
			maxReferrerBytes)
	}
	type answer struct {
		Referrer
		err error
	}
	answers := make([]answer, len(claims))
	err = eachAtOnce(ctx, len(claims), func(ctx context.Context, i int) error {
		a := &answers[i]
		a.Referrer, a.err = readReferrer(ctx, f, subject, claims[i])
		return a.err
	})
	if err != nil {
		return nil, nil, err
	}
	for i, a := range answers {
		switch {
		case a.err != nil:
			left = append(left, fmt.Errorf("referrer %s: %w", quote(string(claims[i].Digest)), a.err))
		case artifactType == "" || a.ArtifactType == artifactType:
			found = append(found, a.Referrer)
		}
	}
	return found, left, nil
}

// eachAtOnce asks a place n things, several at once. What is wrong with one piece of
// content ends nothing.
func eachAtOnce(ctx context.Context, n int, ask func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(askedAtOnce)
	for i := range n {
		g.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = ask(ctx, i)
			}
			if isContent(err) {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// ReferrerList gathers what is listed with a subject, as [Fetcher].Referrers returns it:
// each manifest once, and of those that may be of ArtifactType.
type ReferrerList struct {
	ArtifactType string
	All          []ocispec.Descriptor
	seen         map[digest.Digest]bool
}

// Add is ErrLimit for more than MaxReferrers.
func (l *ReferrerList) Add(listed ...ocispec.Descriptor) error {
	for _, desc := range listed {
		if !MayBeType(desc.ArtifactType, l.ArtifactType) || l.seen[desc.Digest] {
			continue
		}
		if len(l.All) == MaxReferrers {
			return errorf(ErrLimit, "", "more than %d referrers are listed", MaxReferrers)
		}
		if l.seen == nil {
			l.seen = map[digest.Digest]bool{}
		}
		l.seen[desc.Digest] = true
		l.All = append(l.All, desc)
	}
	return nil
}

// isContent reports whether an error is about one piece of content, and not about the
// place that was asked for it.
func isContent(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrDigest) || errors.Is(err, ErrFormat) ||
		errors.Is(err, ErrLimit)
}

// readReferrer fetches what is said to name a subject.
func readReferrer(ctx context.Context, f Fetcher, subject, claim ocispec.Descriptor) (Referrer, error) {
	if err := CheckDescriptor(claim); err != nil {
		return Referrer{}, err
	}
	b, err := f.FetchManifest(ctx, claim)
	if err == nil {
		err = checkContent(claim, b)
	}
	if err != nil {
		return Referrer{}, err
	}
	r := Referrer{}
	if claim.MediaType == ocispec.MediaTypeImageIndex {
		_, err = ParseIndex(b)
	} else {
		r.Manifest, err = ParseManifest(b)
	}
	if err != nil {
		return Referrer{}, err
	}
	named, desc := ReferrerOf(claim, b)
	if named == nil || named.Digest != subject.Digest {
		return Referrer{}, errorf(ErrFormat, "", "is listed with %s, and does not name it as its subject",
			subject.Digest)
	}
	r.Descriptor = desc
	return r, nil
}

// ReferrerOf returns the subject that a manifest or index names, and the descriptor
// that a list of that one's referrers has of it: with its artifactType, which is the
// media type of the config where there is none, and all its annotations. The subject is
// nil for one that names none.
//
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-referrers
func ReferrerOf(desc ocispec.Descriptor, content []byte) (subject *ocispec.Descriptor, listed ocispec.Descriptor) {
	var m struct {
		ArtifactType string              `json:"artifactType"`
		Config       ocispec.Descriptor  `json:"config"`
		Subject      *ocispec.Descriptor `json:"subject"`
		Annotations  map[string]string   `json:"annotations"`
	}
	if json.Unmarshal(content, &m) != nil {
		return nil, desc
	}
	return m.Subject, ocispec.Descriptor{
		MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size,
		ArtifactType: cmp.Or(m.ArtifactType, m.Config.MediaType), Annotations: m.Annotations,
	}
}

// MayBeType reports whether a referrer that is listed with one artifactType may be of
// another, wanted one ("" is any). Lists that clients keep may lack the type, or have that
// of the config in its place, as go-containerregistry writes them.
func MayBeType(listed, wanted string) bool {
	return wanted == "" || listed == wanted || isVague(listed)
}

// isVague reports whether a listed artifactType says nothing.
func isVague(listed string) bool {
	switch listed {
	case "", ocispec.MediaTypeEmptyJSON, ocispec.MediaTypeImageConfig, "application/vnd.docker.container.image.v1+json":
		return true
	}
	return false
}

// ReferrersTag returns the tag of the index that lists a manifest's referrers where the
// registry itself does not.
//
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#referrers-tag-schema
func ReferrersTag(subject digest.Digest) string {
	return string(subject.Algorithm()) + "-" + subject.Encoded()
}

// IsReferrersTag reports whether a tag is of the form that [ReferrersTag] gives: no name
// that a person gave.
func IsReferrersTag(tag string) bool {
	algorithm, encoded, _ := strings.Cut(tag, "-")
	return CheckDigest(digest.Digest(algorithm+":"+encoded)) == nil
}
