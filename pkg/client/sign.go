package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// SignOptions say how a carton is signed.
type SignOptions struct {
	// Output is the file to write for a carton that is no artifact; "" is the carton's
	// name and SignatureExt. Of an artifact it is a copy of the model's signature.
	Output string
	// Force replaces the file, if it is a signature.
	Force bool
}

// SignResult says what was signed. Its JSON is what `sign --format json` prints.
type SignResult struct {
	// Reference is what was signed, with the tag that was taken.
	Reference string `json:"reference"`
	// Digest is the image manifest's; "" where it is no artifact.
	Digest digest.Digest `json:"digest,omitempty"`
	// ModelHash is the model's identity, in lower-case hex; "" where the artifact
	// holds no MANIFEST of its author's.
	ModelHash string `json:"modelHash,omitempty"`
	// KeyID is the sha256 of the public key's PEM.
	KeyID string `json:"keyId"`
	// Signatures are there now.
	Signatures []Signed `json:"signatures"`
}

// Signed is a signature that was made.
type Signed struct {
	// PredicateType says what of: signature.PredicateModel or PredicateImage.
	PredicateType string `json:"predicateType"`
	// Subject is the digest of the image manifest that it refers to; "" for a file.
	Subject digest.Digest `json:"subject,omitempty"`
	// Digest is the referrer's; "" for a file.
	Digest digest.Digest `json:"digest,omitempty"`
	// Path is the file's; "" for a referrer.
	Path string `json:"path,omitempty"`
	// Existed: it was there already, the same bytes.
	Existed bool `json:"existed,omitempty"`
}

// Sign signs what ref names, and reads no weight: what MANIFEST says of the model,
// and of an artifact also its digest, as cosign does. An artifact's signatures are
// referrers of it, and of its image form if there is one of the tag; that of a file
// or folder lies beside it. Who signs twice makes the same bytes, and nothing new.
//
// A signature says that the signer stands for these hashes. Whether content has them
// is verified by who reads it; who signs what others made verifies it before.
func (c *Client) Sign(
	ctx context.Context, ref string, signer *signature.Signer, opts SignOptions,
) (*SignResult, error) {
	loc, err := location.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	result, err := c.call().sign(ctx, loc, signer, opts)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", loc.Redacted(), err)
	}
	return result, nil
}

func (c *call) sign(
	ctx context.Context, loc location.Location, signer *signature.Signer, opts SignOptions,
) (*SignResult, error) {
	src, err := c.open(ctx, loc, OpenOptions{Plain: true, NoPolicy: true, unlinked: true})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	model, err := signModel(ctx, src.Source, signer)
	if err != nil {
		return nil, err
	}
	name := opts.Output
	if name == "" && loc.Kind == location.KindPath {
		if name, err = signatureBeside(loc.Path); err != nil {
			return nil, err
		}
	}
	switch {
	case name == "" && src.artifact == nil:
		return nil, hint.With(errors.New("is a carton on a web server, where no signature can be put"),
			"name a file for it: %s FILE", hint.SignOutput)
	case name != "" && model == nil:
		return nil, errors.New("holds no MANIFEST of its author's that could be signed into a file")
	}
	result := &SignResult{Reference: src.loc.Redacted(), KeyID: signer.PublicKey().ID(), Signatures: []Signed{}}
	if model != nil {
		result.ModelHash = src.Manifest().ModelHash()
	}
	if src.artifact != nil {
		subjects, err := withImageForm(ctx, src, result.ModelHash)
		if err != nil {
			return nil, err
		}
		result.Digest = subjects[0].Digest
		if result.Signatures, err = signSubjects(ctx, src.site.store, subjects, signer, model); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return result, nil
	}
	existed, err := writeSmall(name, model, opts.Force)
	if err != nil {
		return nil, err
	}
	result.Signatures = append(result.Signatures,
		Signed{PredicateType: signature.PredicateModel, Path: name, Existed: existed})
	return result, nil
}

// authored returns the MANIFEST that the model's author wrote, nil where there is none.
func authored(src carton.Source) *carton.Manifest {
	if a, ok := src.(*convert.Source); ok && (a.Plain() || a.Regenerated()) {
		return nil
	}
	return src.Manifest()
}

// signModel signs what MANIFEST says; it is nil where its author wrote none.
func signModel(ctx context.Context, src carton.Source, signer *signature.Signer) ([]byte, error) {
	m := authored(src)
	if m == nil {
		return nil, nil
	}
	info, err := carton.ReadInfo(ctx, src)
	if err != nil {
		return nil, err
	}
	return signer.SignModel(m, info.ModelName)
}

// withImageForm returns an artifact, and its image form where its tag has one.
func withImageForm(ctx context.Context, src *opened, modelHash string) ([]ocispec.Descriptor, error) {
	list := []ocispec.Descriptor{src.artifact.Descriptor()}
	tag := src.loc.Tag
	if src.loc.Digest != "" || tag == "" || len(tag)+len(imageSuffix) > maxTag || modelHash == "" {
		return list, nil
	}
	is, err := lookUp(ctx, src.site.store, tag+imageSuffix)
	if err != nil || is == nil || !is.image || is.model != modelHash {
		return list, err
	}
	desc, err := src.site.store.Resolve(ctx, string(is.digest))
	return append(list, desc), err
}

// signSubjects puts two signatures beside each image manifest: the model's, where there
// is one, and the manifest's own.
func signSubjects(
	ctx context.Context, store layout.Store, subjects []ocispec.Descriptor, signer *signature.Signer, model []byte,
) ([]Signed, error) {
	list := []Signed{}
	for _, subject := range subjects {
		image, err := signer.SignImage(subject.Digest.Encoded())
		if err != nil {
			return nil, err
		}
		for _, s := range []struct {
			kind   string
			bundle []byte
		}{{signature.PredicateModel, model}, {signature.PredicateImage, image}} {
			if s.bundle == nil {
				continue
			}
			dgst, existed, err := putSignature(ctx, store, subject, s.bundle, map[string]string{
				"dev.sigstore.bundle.content":       "dsse-envelope",
				"dev.sigstore.bundle.predicateType": s.kind,
			})
			if err != nil {
				return nil, err
			}
			list = append(list, Signed{PredicateType: s.kind, Subject: subject.Digest, Digest: dgst, Existed: existed})
		}
	}
	return list, nil
}

// putSignature stores a bundle as a referrer of subject, and reports whether it was there.
// No date is in it: who signs again makes nothing new.
func putSignature(
	ctx context.Context, store layout.Store, subject ocispec.Descriptor, bundle []byte, annotations map[string]string,
) (dgst digest.Digest, existed bool, err error) {
	layer := layout.Layer{
		Name: "signature", Open: layout.OpenBytes(bundle),
		Descriptor: ocispec.Descriptor{
			MediaType: signature.MediaType, Digest: digest.FromBytes(bundle),
			Size: int64(len(bundle)),
		},
	}
	art, err := newReferrer(subject, signature.MediaType, layer, annotations)
	if err != nil {
		return "", false, err
	}
	_, err = store.Resolve(ctx, string(art.Digest))
	if existed = err == nil; err != nil && !errors.Is(err, layout.ErrNotFound) {
		return "", false, err
	}
	// One that is there is put again: its registry may not list it.
	_, err = layout.Push(ctx, store, art, layout.PushOptions{})
	return art.Digest, existed, err
}
