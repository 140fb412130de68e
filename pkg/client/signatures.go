package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/signature"
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
	judge := judging{wants, signature.Subject{Model: authored(o.Source)}}
	if o.artifact != nil {
		judge.about.Image = o.artifact.Descriptor().Digest.Encoded()
	}
	bundles, unread, err := c.bundles(ctx, o, opts.Signature, judge)
	if err != nil {
		return fmt.Errorf("signatures: %w", err)
	}
	// What failed for a reason of the place's may be what counts.
	failed := slices.IndexFunc(unread, func(err error) bool { return !isAboutContent(err) })
	for i, w := range wants {
		var judged []signature.Judgement
		for _, b := range bundles {
			judged = append(judged, b.judged[i])
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
		err = fmt.Errorf("%w (and %d referrers that can't be read, of which one: %w)", err, len(unread),
			errors.New(unread[0].Error()))
	}
	switch {
	case w.by != "":
		return hint.With(err, "the policy asks for it: %s", w.by)
	case errors.Is(err, signature.ErrKeyless):
		return hint.With(err,
			"cosign verify --certificate-identity WHO --certificate-oidc-issuer WHERE REF verifies keyless signatures")
	case errors.Is(err, signature.ErrNotSigned) && file == "":
		return hint.With(err, "%s FILE names where a signature is", hint.Signature)
	}
	return err
}

// bundle is a signature that was found, and what it is worth to each who wants one. Its
// bytes are kept if it is one of the model that counts.
type bundle struct {
	judged []signature.Judgement
	raw    []byte
}

// judging judges signatures as they are read.
type judging struct {
	wants []wanted
	about signature.Subject
}

// bundle judges one; of is where it is, a digest or a file.
func (j judging) bundle(of string, raw []byte) bundle {
	var b bundle
	for _, w := range j.wants {
		judged := w.trust.Judge(of, raw, j.about)
		if b.judged = append(b.judged, judged); judged.Err == nil && judged.PredicateType == signature.PredicateModel {
			b.raw = raw
		}
	}
	return b
}

// bundles finds what signatures there are. file is where a signature is, "" for where
// it belongs: among an artifact's referrers, or beside a file.
func (c *call) bundles(
	ctx context.Context, o *opened, file string, judge judging,
) (found []bundle, unread []error, err error) {
	if file == "" && o.artifact != nil {
		return c.referredBundles(ctx, o, judge)
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
	raw, err := readSignature(file, judge.about.Model)
	if errors.Is(err, signature.ErrNotSigned) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return []bundle{judge.bundle(file, raw)}, nil, nil
}

// isAboutContent reports whether an error is about one piece of content.
func isAboutContent(err error) bool {
	return errtext.IsContent(err) || errors.Is(err, layout.ErrNotFound)
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
