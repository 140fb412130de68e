package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Referrers implements [layout.Fetcher]. The registry's own list counts where it has one
// with anything in it; else the index that clients keep under a tag does.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#listing-referrers
func (r *Repository) Referrers(
	ctx context.Context, subject ocispec.Descriptor, artifactType string,
) ([]ocispec.Descriptor, error) {
	if err := layout.CheckDigest(subject.Digest); err != nil {
		return nil, fmt.Errorf("referrers: %w", err)
	}
	listed, err := r.listedReferrers(ctx, subject.Digest, artifactType)
	if len(listed) > 0 || err != nil && !lacksList(err) {
		return listed, wrapReferrers(subject, err)
	}
	_, index, tagErr := r.referrersIndex(ctx, subject.Digest)
	switch {
	case tagErr != nil:
		return nil, wrapReferrers(subject, tagErr)
	case index == nil && isDenied(err):
		return nil, wrapReferrers(subject, err)
	case index == nil:
		return nil, nil
	}
	list := layout.ReferrerList{ArtifactType: artifactType}
	x, err := layout.ParseIndex(index)
	if err == nil {
		err = list.Add(x.Manifests...)
	}
	if err != nil {
		return nil, wrapReferrers(subject, fmt.Errorf("tag %s: %w", layout.ReferrersTag(subject.Digest), err))
	}
	return list.All, nil
}

func wrapReferrers(subject ocispec.Descriptor, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("referrers of %s: %w", subject.Digest, err)
}

// lacksList reports whether an error is a registry's that has no list of referrers.
// Answers that may be others the next time are not.
func lacksList(err error) bool {
	if errors.Is(err, errNoList) {
		return true
	}
	e := (*Error)(nil)
	return errors.As(err, &e) && !e.token && e.Status >= 400 && !e.Retryable()
}

// errNoList: an answer that is no list of referrers.
var errNoList = errors.New("is no list of referrers")

// listedReferrers is the registry's own list.
func (r *Repository) listedReferrers(
	ctx context.Context, subject digest.Digest, artifactType string,
) ([]ocispec.Descriptor, error) {
	query := url.Values{}
	if artifactType != "" {
		query.Set("artifactType", artifactType)
	}
	list := layout.ReferrerList{ArtifactType: artifactType}
	size := 0
	err := r.pages(ctx, "referrers/"+subject.String(), query, accept(ocispec.MediaTypeImageIndex),
		func(p page) (bool, error) {
			mediaType, _, _ := mime.ParseMediaType(p.resp.Header.Get("Content-Type"))
			if mediaType != ocispec.MediaTypeImageIndex {
				return false, fmt.Errorf("%s answered with %q: %w", r.host.host, said(mediaType), errNoList)
			}
			if size += len(p.body); size > maxListBytes {
				return false, fmt.Errorf("got a list of over %d bytes: %w", maxListBytes, layout.ErrLimit)
			}
			x, err := layout.ParseIndex(p.body)
			if err != nil {
				return false, err
			}
			return true, list.Add(x.Manifests...)
		})
	return list.All, err
}

// referrersIndex returns the index that clients keep, nil for none.
func (r *Repository) referrersIndex(ctx context.Context, subject digest.Digest) (tag string, index []byte, err error) {
	tag = layout.ReferrersTag(subject)
	desc, index, err := r.ResolveManifest(ctx, tag)
	switch {
	case errors.Is(err, layout.ErrNotFound):
		return tag, nil, nil
	case err == nil && desc.MediaType != ocispec.MediaTypeImageIndex:
		err = fmt.Errorf("tag %s: got %s, want an index of referrers: %w", tag, said(desc.MediaType), layout.ErrFormat)
	}
	return tag, index, err
}

// listReferrer sees to it that a manifest is listed with the subject that it names: by
// the registry, or else in the index that clients keep. The registry is asked whatever it
// said when it took the manifest: OCI-Subject has been sent by some that list nothing
// (github.com/sigstore/sigstore-js/issues/1183), and left out by others. What it did once
// it is believed to do again.
func (r *Repository) listReferrer(ctx context.Context, desc ocispec.Descriptor, content []byte) error {
	subject, listed := layout.ReferrerOf(desc, content)
	if subject == nil {
		return nil
	}
	if err := layout.CheckDigest(subject.Digest); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	r.referring.Lock()
	defer r.referring.Unlock()
	if r.lists == unknown {
		has, err := r.hasReferrer(ctx, subject.Digest, desc.Digest)
		switch {
		case err != nil && !lacksList(err):
			return err
		case has:
			r.lists = yes
		case err != nil:
			r.lists = no
		}
	}
	if r.lists == yes {
		return nil
	}
	known := []ocispec.Descriptor{listed}
	return r.changeIndex(ctx, subject.Digest, func(index []byte) ([]byte, bool, error) {
		if index != nil {
			x, err := layout.ParseIndex(index)
			if err != nil {
				return nil, false, err
			}
			known = append(known, x.Manifests...) // what another writer loses is put back
		}
		return layout.AddReferrers(index, known...)
	})
}

// hasReferrer reports whether the registry lists a manifest with its subject.
func (r *Repository) hasReferrer(ctx context.Context, subject, dgst digest.Digest) (bool, error) {
	listed, err := r.listedReferrers(ctx, subject, "")
	for _, l := range listed {
		if l.Digest == dgst {
			return true, nil
		}
	}
	return false, err
}

const (
	// indexAttempts is how often an index that others change too is read.
	indexAttempts = 30
	// leastPause and longestPause bound the wait for others that have read an index and
	// not written theirs.
	leastPause, longestPause = 50 * time.Millisecond, 3 * time.Second
)

// changeIndex changes the index of a manifest's referrers. A registry can't refuse to
// replace what somebody else has written meanwhile. So the index is read again when
// everybody who read it before this one was written has had the time to write: twice
// the time that it took here. It is changed again where that has lost something, and
// watched until nobody else writes.
func (r *Repository) changeIndex(
	ctx context.Context, subject digest.Digest, change func(index []byte) ([]byte, bool, error),
) error {
	ctx = r.push(ctx)
	var last []byte // as it was written or read before
	for range indexAttempts {
		began := time.Now()
		tag, is, err := r.referrersIndex(ctx, subject)
		if err != nil {
			return err
		}
		index, changed, err := change(is)
		switch {
		case err != nil:
			return fmt.Errorf("tag %s: %w", tag, err)
		case !changed && (last == nil || bytes.Equal(is, last)):
			return nil
		case changed:
			desc := ocispec.Descriptor{
				MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(index),
				Size: int64(len(index)),
			}
			if err := r.putManifest(ctx, desc, index, tag); err != nil {
				return fmt.Errorf("tag %s: %w", tag, err)
			}
		}
		last = index
		pause := time.NewTimer(min(max(2*time.Since(began), leastPause), longestPause))
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
	return fmt.Errorf("%s is changed by others all the time: %w", layout.ReferrersTag(subject), ErrGaveUp)
}

// answer is what is known of a registry.
type answer int

const (
	unknown answer = iota
	yes
	no
)
