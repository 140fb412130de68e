package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

const (
	// maxSignatures is how many signatures of one artifact are read.
	maxSignatures = 1000
	// signaturesAtOnce is how many are fetched at once.
	signaturesAtOnce = 8
)

// Asked says what was found where signatures were asked for.
type Asked struct {
	// Signatures are all that were judged. Where it is by policy that one is wanted,
	// those that count do so for the policy.
	Signatures []signature.Judgement
	// Unread says of referrers why they are none.
	Unread []error
}

// wanted is whose signature is wanted, and who says so.
type wanted struct {
	trust *signature.Trust
	by    string // "" for the caller
}

// ask refuses what is not signed by those that are wanted: before any weight is read.
// The first is the caller's.
func (c *call) ask(ctx context.Context, o *opened, opts OpenOptions) error {
	wants, err := c.wants(o, opts)
	if err != nil || len(wants) == 0 {
		return err
	}
	bundles, unread, err := c.bundles(ctx, o, opts.Signature)
	if err != nil {
		return fmt.Errorf("signatures: %w", err)
	}
	// What failed for a reason of the place's may be what counts.
	failed := slices.IndexFunc(unread, func(err error) bool { return !isAboutContent(err) })
	about := signature.Subject{Model: authored(o.Source)}
	if o.artifact != nil {
		about.Image = o.artifact.Descriptor().Digest.Encoded()
	}
	for i, w := range wants {
		var judged []signature.Judgement
		for _, b := range bundles {
			judged = append(judged, w.trust.Judge(b.of, b.raw, about))
		}
		if i == 0 && opts.Asked != nil {
			opts.Asked(&Asked{judged, unread})
		}
		if err := signature.Decide(judged); err != nil && failed >= 0 {
			return fmt.Errorf("signatures: %w", unread[failed])
		} else if err != nil {
			return refused(err, w, unread, opts.Signature)
		}
		if o.modelSigned == nil {
			o.modelSigned = ofModel(bundles, judged)
		}
	}
	return nil
}

// ofModel returns the signature of the model that counts, nil for none: the same one
// in whatever order they are listed.
func ofModel(bundles []bundle, judged []signature.Judgement) []byte {
	best := -1
	for i, j := range judged {
		if j.Err == nil && j.PredicateType == signature.PredicateModel && (best < 0 || j.Of < judged[best].Of) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return bundles[best].raw
}

// wants returns whose signatures are wanted of what was opened.
func (c *call) wants(o *opened, opts OpenOptions) (list []wanted, err error) {
	if opts.Trust != nil {
		list = append(list, wanted{trust: opts.Trust})
	}
	if c.opts.Policy == nil || opts.NoPolicy || o.loc.Kind != location.KindRegistry {
		return list, nil
	}
	trust, by, err := c.opts.Policy(o.loc.Registry, o.loc.Repository)
	if err != nil {
		return nil, err
	}
	if trust != nil {
		list = append(list, wanted{trust, by})
	}
	return list, nil
}

// isRefusal reports whether an error says that nothing is signed by whom was asked for.
func isRefusal(err error) bool {
	return slices.ContainsFunc([]error{
		signature.ErrNotSigned, signature.ErrSigner, signature.ErrModel, signature.ErrPredicate, signature.ErrExpired,
		signature.ErrKeyless, signature.ErrFormat, signature.ErrLimit,
	}, func(kind error) bool { return errors.Is(err, kind) })
}

func refused(err error, w wanted, unread []error, file string) error {
	if len(unread) > 0 {
		err = fmt.Errorf("%w (and %d referrers that can't be read, of which one: %w)", err, len(unread), errors.New(unread[0].Error()))
	}
	switch {
	case w.by != "":
		return hint.With(err, "the policy asks for it: %s", w.by)
	case errors.Is(err, signature.ErrKeyless):
		return hint.With(err, "cosign verify --certificate-identity WHO --certificate-oidc-issuer WHERE REF verifies keyless signatures")
	case errors.Is(err, signature.ErrNotSigned) && file == "":
		return hint.With(err, "%s FILE names where a signature is", hint.Signature)
	}
	return err
}

// bundle is a signature that was found.
type bundle struct {
	of  string // where: a digest or a file
	raw []byte
}

// bundles finds what signatures there are. file is where a signature is, "" for where
// it belongs: among an artifact's referrers, or beside a file.
func (c *call) bundles(ctx context.Context, o *opened, file string) (found []bundle, unread []error, err error) {
	if file == "" && o.artifact != nil {
		return c.referredBundles(ctx, o)
	}
	if file == "" && o.loc.Kind != location.KindPath {
		err := errors.New("got no file with the signature of a carton on a web server")
		return nil, nil, hint.With(err, "fetch it, and name it: %s FILE", hint.Signature)
	}
	if file == "" {
		if file, err = signatureBeside(o.loc.Path); err != nil {
			return nil, nil, err
		}
	}
	raw, err := readSignature(file, authored(o.Source))
	if errors.Is(err, signature.ErrNotSigned) {
		return nil, nil, nil
	}
	return []bundle{{file, raw}}, nil, err
}

// referredBundles fetches the bundles that are an artifact's referrers.
func (c *call) referredBundles(ctx context.Context, o *opened) (found []bundle, unread []error, err error) {
	f := &reader{Fetcher: o.site.store, received: &c.received}
	referrers, unread, err := layout.ReadReferrers(ctx, f, o.artifact.Descriptor(), signature.MediaType)
	if err != nil {
		return nil, nil, err
	}
	if len(referrers) > maxSignatures {
		err := &layout.Error{Kind: layout.ErrLimit, Msg: fmt.Sprintf("has %d signatures, and at most %d are read", len(referrers), maxSignatures)}
		return nil, nil, err
	}
	most := signature.MaxBytesOf(authored(o.Source))
	left := 4*most + maxSignatures*4096 // bytes, of all
	raws := make([][]byte, len(referrers))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(signaturesAtOnce)
	for i, r := range referrers {
		group.Go(func() error {
			desc, why := bundleOf(r, most)
			mu.Lock()
			if why == nil && desc.Size > left {
				why = &layout.Error{Kind: layout.ErrLimit, Msg: "is behind more bytes of signatures than are read"}
			}
			left -= desc.Size
			mu.Unlock()
			if why == nil {
				raws[i], why = layout.ReadBlob(ctx, f, desc, most)
			}
			if why != nil && ctx.Err() != nil {
				return why
			}
			if why != nil {
				mu.Lock()
				unread = append(unread, fmt.Errorf("referrer %s: %w", r.Digest, why))
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i, raw := range raws {
		if raw != nil {
			found = append(found, bundle{string(referrers[i].Digest), bytes.TrimSpace(raw)})
		}
	}
	return found, unread, nil
}

// isAboutContent reports whether an error is about one piece of content.
func isAboutContent(err error) bool {
	return errtext.IsContent(err) || errors.Is(err, layout.ErrNotFound)
}

// bundleOf returns the one blob of a referrer that is a signature.
func bundleOf(r layout.Referrer, most int64) (ocispec.Descriptor, error) {
	if r.Manifest == nil || len(r.Manifest.Layers) != 1 || r.Manifest.Layers[0].MediaType != signature.MediaType {
		return ocispec.Descriptor{}, &layout.Error{Kind: layout.ErrFormat, Msg: "is no signature: it has not one layer of a bundle"}
	}
	desc := r.Manifest.Layers[0]
	if desc.Size > most {
		err := &layout.Error{Kind: layout.ErrLimit, Msg: fmt.Sprintf("has a bundle of %d bytes, and that of this model has at most %d", desc.Size, most)}
		return ocispec.Descriptor{}, err
	}
	return desc, nil
}

// Signatures returns how many signatures are listed beside an artifact of ref's place,
// verified by nobody: whoever may write there can add one.
func (c *Client) Signatures(ctx context.Context, ref string, artifact ocispec.Descriptor) (int, error) {
	loc, err := parseArtifact(ref)
	if err != nil {
		return 0, fmt.Errorf("signatures: %w", err)
	}
	s, err := c.site(ctx, loc, reading)
	if err != nil {
		return 0, fmt.Errorf("signatures %s: %w", loc, err)
	}
	list, err := s.store.Referrers(ctx, artifact, signature.MediaType)
	if err != nil {
		return 0, fmt.Errorf("signatures %s: %w", loc, err)
	}
	return len(list), nil
}
