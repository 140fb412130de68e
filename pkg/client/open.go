package client

import (
	"context"
	"errors"
	"io/fs"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/errtext"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// OpenOptions say what is accepted as a carton.
type OpenOptions struct {
	// Plain opens a model artifact that holds no carton as what it is: a
	// [*convert.Source] that is Plain, which has no carton.toml and no model hash.
	Plain bool
	// Wrap makes a carton of such a model; nil refuses it unless it may be Plain.
	Wrap *carton.Runner
	// ModelHash refuses every other model, in lower-case hex.
	ModelHash string
	// Trust, where it is set, refuses what none of those has signed, before any weight is
	// read: an artifact has its own signature or the model's among its referrers, a file
	// or folder the model's beside it.
	Trust *signature.Trust
	// Signature is a file with the signature, for one that lies anywhere else.
	Signature string
	// Asked, which may be nil, is told what was found where Trust was asked for.
	Asked func(*Asked)
	// NoPolicy opens what Options.Policy refuses, for who only looks at what is there
	// and uses nothing of it.
	NoPolicy bool

	preferred   *site // where linked content is looked for first, nil for nowhere
	readsConfig bool  // an artifact's config will be read
	unlinked    bool  // linked content is not looked for
}

// Open opens the carton that ref names, wherever it is, as [location.Parse] reads
// it; "latest" is the tag of an artifact that is given none, or else an image
// layout's only manifest. Members that a thin carton lacks are read from where its
// LINKS says. An artifact comes back as a [*convert.Source], which knows its
// descriptor.
//
// The source gives up what it is doing when it is closed, and one from a URL also
// when ctx ends; else ctx is for opening.
func (c *Client) Open(ctx context.Context, ref string, opts OpenOptions) (carton.Source, error) {
	loc, err := location.Parse(ref)
	if err != nil {
		return nil, err
	}
	o, err := c.call().open(ctx, loc, opts)
	if err != nil {
		return nil, err
	}
	return o.Source, nil
}

// Resolve returns the descriptor that a reference to an artifact stands for, of
// whatever kind it is.
func (c *Client) Resolve(ctx context.Context, ref string) (ocispec.Descriptor, error) {
	loc, err := location.Parse(ref)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	_, desc, _, err := c.resolve(ctx, loc, false)
	return desc, err
}

// resolve opens an artifact's place, and asks it what the location stands for. The
// site's location has the tag that was taken. Where fetch is set, the place gives the
// image manifest with its digest.
func (c *Client) resolve(
	ctx context.Context, loc location.Location, fetch bool,
) (*site, ocispec.Descriptor, []byte, error) {
	written, unsaid := loc.String(), loc.Reference() == ""
	if unsaid {
		loc.Tag = defaultTag
	}
	s, err := c.site(ctx, loc, reading)
	if err != nil {
		return nil, ocispec.Descriptor{}, nil, err
	}
	desc, raw, err := s.resolve(ctx, loc.Reference(), fetch)
	if unsaid && errors.Is(err, layout.ErrNotFound) {
		if only, b, err2 := s.resolve(ctx, "", fetch); err2 == nil {
			desc, raw, err = only, b, nil
			if s.loc.Tag = only.Annotations[ocispec.AnnotationRefName]; s.loc.Tag == "" {
				s.loc.Digest = only.Digest
			}
		}
	}
	if errors.Is(err, layout.ErrNotFound) && loc.Kind == location.KindRegistry && unsaid {
		err = hint.With(err, "no tag was given, so %s was asked for: write %s:TAG", defaultTag, written)
	}
	err = hintToTags(err, loc)
	if err != nil && loc.Kind == location.KindRegistry {
		if _, there := os.Stat(written); there == nil {
			err = hint.With(err, "for the file or folder of that name write ./%s", written)
		}
	}
	return s, desc, raw, err
}

// hintToTags adds to a registry's error about a tag that is not there how to find those
// that are. A folder names them itself.
func hintToTags(err error, loc location.Location) error {
	if !errors.Is(err, layout.ErrNotFound) || loc.Kind != location.KindRegistry || loc.Tag == "" || loc.Digest != "" {
		return err
	}
	return hint.With(err, "%s %s lists the tags that are there", hint.Tags, loc.Untagged())
}

func (s *site) resolve(ctx context.Context, reference string, fetch bool) (ocispec.Descriptor, []byte, error) {
	if fetch {
		return s.store.ResolveManifest(ctx, reference)
	}
	desc, err := s.store.Resolve(ctx, reference)
	return desc, nil, err
}

// opened is a carton and where it came from.
type opened struct {
	carton.Source
	loc      location.Location // with the tag that was taken
	site     *site             // nil for a carton that is no artifact
	artifact *convert.Source   // nil for a carton that is no artifact
	// modelSigned is the signature of the model that counted, nil where none was wanted
	// or the artifact's did.
	modelSigned []byte
}

// open opens what loc names.
func (c *call) open(ctx context.Context, loc location.Location, opts OpenOptions) (*opened, error) {
	o := &opened{loc: loc}
	var err error
	switch loc.Kind {
	case location.KindPath:
		if err = loc.LayoutFolder(); err == nil {
			o.Source, err = openPath(loc.Path)
		}
	case location.KindURL:
		o.Source, err = c.openURL(ctx, loc.URL)
	case location.KindHub:
		err = hint.With(location.Errorf(loc.String(), "is a hub's repository, and no carton"),
			"%s makes one of its files", hint.Pack)
	default:
		return c.openArtifact(ctx, loc, opts)
	}
	if err != nil {
		return nil, err
	}
	err = wantModel(o.Manifest().ModelHash(), opts.ModelHash)
	if err == nil {
		err = c.ask(ctx, o, opts)
	}
	if err != nil {
		o.Close()
		return nil, err
	}
	if o.Links() == nil || opts.unlinked {
		return o, nil
	}
	follow, err := c.links(ctx, opts.preferred)
	if err != nil {
		o.Close()
		return nil, err
	}
	o.Source = links.Resolve(o.Source, follow)
	return o, nil
}

// openPath opens a file or folder. Its error need not name the path, which the
// caller knows.
func openPath(name string) (carton.Source, error) {
	src, err := carton.Open(name)
	if e, ok := err.(*fs.PathError); ok && e.Path == name { //nolint:errorlint // what is around it has words of its own
		err = errtext.WithKind(e.Err, e)
	}
	return src, err
}

func (c *call) openArtifact(ctx context.Context, loc location.Location, opts OpenOptions) (*opened, error) {
	s, desc, raw, err := c.resolve(ctx, loc, true)
	if err != nil {
		return nil, err
	}
	f := &reader{Fetcher: s.store, received: &c.received, modelHash: opts.ModelHash, raw: raw, digest: desc.Digest}
	src, err := convert.Open(ctx, f, desc, convert.OpenOptions{
		Wrap: opts.Wrap, Plain: opts.Plain, Origin: s.origin(), ReadsConfig: opts.readsConfig,
	})
	if err != nil {
		return nil, err
	}
	o := &opened{Source: src, loc: s.loc, site: s, artifact: src}
	if err = wantModel(src.Manifest().ModelHash(), opts.ModelHash); err == nil {
		err = c.ask(ctx, o, opts)
	}
	if err != nil {
		src.Close()
		return nil, err
	}
	return o, nil
}
