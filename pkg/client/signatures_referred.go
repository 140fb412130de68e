package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

const (
	// maxSignatures is how many signatures of one artifact are read.
	maxSignatures = 1000
	// maxSignatureBytes is how much of all of them is, and a few of the longest.
	maxSignatureBytes = 64 << 20
	// maxSignatureManifest is the longest manifest that is taken for a signature's:
	// those that anybody writes have some hundred bytes.
	maxSignatureManifest = 64 << 10
	// signaturesAtOnce is how many are fetched at once.
	signaturesAtOnce = 8
)

// smallReferrers is a place whose large referrers are left out: they are no signatures,
// and whoever put them there would hide those behind what is fetched at most.
type smallReferrers struct {
	layout.Fetcher
	left []error
}

// Referrers implements [layout.Fetcher].
func (f *smallReferrers) Referrers(
	ctx context.Context, subject ocispec.Descriptor, artifactType string,
) ([]ocispec.Descriptor, error) {
	list, err := f.Fetcher.Referrers(ctx, subject, artifactType)
	return slices.DeleteFunc(list, func(d ocispec.Descriptor) bool {
		large := d.Size > maxSignatureManifest
		if large {
			f.left = append(f.left, fmt.Errorf("referrer %s: %w", errtext.Quoted(string(d.Digest)), &layout.Error{
				Kind: layout.ErrLimit, Msg: fmt.Sprintf(
					"has a manifest of %d bytes, and that of a signature has at most %d", d.Size, maxSignatureManifest),
			}))
		}
		return large
	}), err
}

// referredBundles fetches and judges the bundles that are an artifact's referrers. The
// smallest come first: junk hides what counts only by being no larger.
func (c *call) referredBundles(
	ctx context.Context, o *opened, judge judging,
) (found []bundle, unread []error, err error) {
	small := &smallReferrers{Fetcher: o.site.store}
	f := &reader{Fetcher: small, received: &c.received}
	referrers, unread, err := layout.ReadReferrers(ctx, f, o.artifact.Descriptor(), signature.MediaType)
	if err != nil {
		return nil, nil, err
	}
	if len(referrers) > maxSignatures {
		err := &layout.Error{
			Kind: layout.ErrLimit,
			Msg:  fmt.Sprintf("has %d signatures, and at most %d are read", len(referrers), maxSignatures),
		}
		return nil, nil, err
	}
	unread = append(unread, small.left...)
	most := signature.MaxBytesOf(judge.about.Model)
	blobs, whys := make([]ocispec.Descriptor, len(referrers)), make([]error, len(referrers))
	order := make([]int, len(referrers))
	for i, r := range referrers {
		order[i] = i
		blobs[i], whys[i] = bundleOf(r, most)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(blobs[a].Size, blobs[b].Size) })
	left, bundles := maxSignatureBytes+4*most, make([]bundle, len(referrers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(signaturesAtOnce)
	for _, i := range order {
		if left -= blobs[i].Size; whys[i] == nil && left < 0 {
			whys[i] = &layout.Error{Kind: layout.ErrLimit, Msg: "is behind more bytes of signatures than are read"}
		}
		if whys[i] != nil {
			continue
		}
		group.Go(func() error {
			raw, err := layout.ReadBlob(ctx, f, blobs[i], most)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if whys[i] = err; err == nil {
				bundles[i] = judge.bundle(string(referrers[i].Digest), bytes.TrimSpace(raw))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i, why := range whys {
		if why != nil {
			unread = append(unread, fmt.Errorf("referrer %s: %w", referrers[i].Digest, why))
		} else {
			found = append(found, bundles[i])
		}
	}
	return found, unread, nil
}

// bundleOf returns the one blob of a referrer that is a signature.
func bundleOf(r layout.Referrer, most int64) (ocispec.Descriptor, error) {
	if r.Manifest == nil || len(r.Manifest.Layers) != 1 || r.Manifest.Layers[0].MediaType != signature.MediaType {
		return ocispec.Descriptor{}, &layout.Error{
			Kind: layout.ErrFormat,
			Msg:  "is no signature: it has not one layer of a bundle",
		}
	}
	desc := r.Manifest.Layers[0]
	if desc.Size > most {
		err := &layout.Error{
			Kind: layout.ErrLimit,
			Msg:  fmt.Sprintf("has a bundle of %d bytes, and that of this model has at most %d", desc.Size, most),
		}
		return ocispec.Descriptor{}, err
	}
	return desc, nil
}
