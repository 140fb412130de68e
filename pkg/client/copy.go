package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// copyVerb is what errors call a copy.
const copyVerb = "copy"

// CopyOptions say how an artifact is copied. The zero value copies it alone.
type CopyOptions struct {
	// Recursive takes along what belongs to the artifact: its image form; what refers
	// to either, signatures and the like, and what refers to those; and what cosign
	// keeps under tags that are named for their digests.
	Recursive bool
	// ImageTag, with Recursive, is the image form's tag at both places; "" is the
	// artifact's tag, followed by "-image".
	ImageTag string
	// LeaveImage leaves an image form of another model where the copy goes as it is: see
	// PushOptions. With Recursive the source's does not go along.
	LeaveImage bool
	// ModelHash refuses every other model, in lower-case hex.
	ModelHash string
	// Trust, where it is set, refuses what none of those has signed, and Signature is the
	// file with its signature, as in OpenOptions. With Recursive an image form that they
	// have not signed stays behind, and is an error where ImageTag names it. Who made
	// what else goes along is not asked.
	Trust     *signature.Trust
	Signature string
	// AllowInvalid copies a carton although its carton.toml, or what that refers to,
	// breaks the rules.
	AllowInvalid bool
	// NoClobber refuses to move a tag that points to something else.
	NoClobber bool
	// Force replaces an archive that exists. A new archive has nothing of the old one.
	Force bool
	// DryRun asks the place what it has, and sends nothing.
	DryRun bool
	// Planned, which may be nil, is called once when it is known what is copied, before
	// anything is sent. The result's layers have no Status yet.
	Planned func(*PushResult)
	// Concurrency is how many blobs travel at once; 0 is 8.
	Concurrency int
	// Progress, which may be nil, is told what happens to each transfer.
	Progress progress.Func
}

// Copy brings an artifact to ref as it is: the copy has its digest. Either may be in a
// registry, an image layout or an archive. ref is read by
// [location.ParseCopyDestination]; where it names no tag, it gets that of the source,
// or none where that was named by its digest.
//
// The tag is resolved once, and everything goes by the digest that it stood for. Blobs
// are mounted where both are repositories of one registry, what is there already is
// not sent, and what broke off is gone on with. A copy onto itself does nothing, and
// says so (PushResult.AlreadyThere).
//
// What a policy wants signed (Options.Policy) is copied if it is.
//
// Anything can be copied: images, indexes with all that they list, models of other
// tools. What is a carton, or says that it is one, is vouched for, as by a push
// (convert.Copy); of everything else it is only known that it has its digests.
func (c *Client) Copy(ctx context.Context, source, ref string, opts CopyOptions) (*PushResult, error) {
	p := &push{verb: copyVerb, call: c.call(), opts: PushOptions{
		Mapping:  convert.Options{AllowInvalid: opts.AllowInvalid},
		ImageTag: opts.ImageTag, LeaveImage: opts.LeaveImage, NoClobber: opts.NoClobber, Force: opts.Force,
		DryRun: opts.DryRun, Planned: opts.Planned, Concurrency: opts.Concurrency, Progress: opts.Progress,
	}}
	from, to, err := p.fromTo(source, ref)
	if err == nil {
		err = p.apart(from, to)
	}
	if err == nil && opts.ImageTag != "" && !opts.Recursive {
		err = errors.New("got a tag for the image form, which only goes along with Recursive")
	}
	if err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	p.name = from.Redacted()
	cp := &copying{push: p, opts: opts}
	defer cp.close()
	if err := cp.open(ctx, from, to); err != nil {
		return nil, fmt.Errorf("copy %s: %w", p.name, err)
	}
	return p.run(ctx)
}

// fromTo says what is copied, and where to.
func (p *push) fromTo(source, ref string) (from, to location.Location, err error) {
	if from, err = parseArtifact(source); err != nil {
		if from.Kind == location.KindPath && from.LayoutFolder() == nil {
			err = hint.With(err, "%s sends a carton", hint.Push)
		}
		return from, to, err
	}
	if to, p.tags, err = location.ParseCopyDestination(ref); err != nil {
		if is, _ := location.Parse(ref); is.Path != "" && is.Kind == location.KindPath && is.LayoutFolder() == nil {
			err = hint.With(err, "%s writes a carton, and with %s its files", hint.Pull, hint.Unpack)
		}
	}
	return from, to, err
}

// copying is what a copy is made of.
type copying struct {
	*push
	opts    CopyOptions
	source  *site
	sources []*convert.Source // that are open
}

func (c *copying) close() {
	for _, s := range c.sources {
		s.Close()
	}
}

// open opens both places, and what is to be copied.
func (c *copying) open(ctx context.Context, from, to location.Location) error {
	s, desc, raw, err := c.call.resolve(ctx, from, true)
	if err != nil {
		return err
	}
	c.source, c.from = s, s.loc
	if to.Reference() == "" {
		if to, err = c.tagAsSource(to, desc); err != nil {
			return err
		}
	}
	if c.site, err = c.call.site(ctx, to, c.push.opts.opening()); err != nil {
		return err
	}
	what, err := c.what(ctx, desc, raw, c.opts.ModelHash)
	if err == nil {
		err = c.askPolicy(ctx, what)
	}
	if err != nil {
		return err
	}
	c.raw = what.Artifact
	if what.src != nil {
		c.src, c.raw = what.src, nil
	}
	if c.there, err = c.isThere(ctx, desc); c.there || err != nil {
		return err
	}
	return c.gather(ctx, what)
}

// askPolicy asks whether what is copied is signed, as whoever opens it does. Of what
// is no model no signatures are read.
func (c *copying) askPolicy(ctx context.Context, what *content) error {
	o := &opened{loc: c.source.loc, site: c.source}
	asked := OpenOptions{Trust: c.opts.Trust, Signature: c.opts.Signature}
	if what.model != nil {
		o.Source, o.artifact = what.model, what.model
		return c.call.ask(ctx, o, asked)
	}
	wants, err := c.call.wants(o, asked)
	if err == nil && len(wants) > 0 {
		err = refused(fmt.Errorf("is no model, and signatures are read of models: %w", signature.ErrNotSigned),
			wants[0], nil, "")
	}
	return err
}

// tagAsSource takes the tag of the source, or its digest, for a place that was named
// without either.
func (c *copying) tagAsSource(to location.Location, desc ocispec.Descriptor) (location.Location, error) {
	tag := c.source.loc.Tag
	if tag == "" {
		to.Digest = desc.Digest
		return to, nil
	}
	if err := registry.CheckTag(tag); err != nil {
		return to, hint.With(location.Errorf(tag, "is no tag that %s can have", to), "name another: %s:TAG", to)
	}
	to.Tag, c.tags = tag, []string{tag}
	return to, nil
}

// isThere reports whether the copy is onto itself: one place, in which all tags point
// to what is copied. What belongs to it is there under the tag that it was found by.
func (c *copying) isThere(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	from, to := c.source.loc, c.site.loc
	same := from.Kind == to.Kind && from.Registry == to.Registry && from.Repository == to.Repository
	if to.IsLocal() {
		same = same && sameFile(from.Path, to.Path)
	}
	if !same || c.opts.Recursive && !slices.Equal(c.tags, []string{from.Tag}) {
		return false, nil
	}
	for _, tag := range c.tags {
		is, err := c.source.store.Resolve(ctx, tag)
		if errors.Is(err, layout.ErrNotFound) || err == nil && is.Digest != desc.Digest {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return len(c.tags) > 0 || to.Digest == desc.Digest, nil
}

// content is something that is copied.
type content struct {
	*layout.Artifact
	entries []ocispec.Descriptor // what an index lists
	src     *convert.Source      // nil for what is no carton
	model   *convert.Source      // that, or a model that is none; nil for anything else
}

// what opens what is under a digest. It is known to be no carton where it does not say
// so and can't be opened as one.
func (c *copying) what(ctx context.Context, desc ocispec.Descriptor, raw []byte, modelHash string) (*content, error) {
	f := &reader{
		Fetcher: c.source.store, received: &c.call.received, modelHash: modelHash, raw: raw,
		digest: desc.Digest,
	}
	var model *convert.Source
	if !layout.IsIndex(desc.MediaType) {
		src, err := convert.Open(ctx, f, desc,
			convert.OpenOptions{Plain: true, Origin: c.source.origin(), ReadsConfig: true})
		switch {
		case err == nil && !src.Plain():
			c.sources = append(c.sources, src)
			return &content{Artifact: &layout.Artifact{Descriptor: desc}, src: src, model: src},
				wantModel(src.Manifest().ModelHash(), modelHash)
		case err == nil:
			c.sources, model = append(c.sources, src), src
		case !errors.Is(err, convert.ErrNoCarton) && (!errtext.IsContent(err) || saysCarton(raw)):
			return nil, err
		}
	}
	if modelHash != "" {
		return nil, wantModel("", modelHash)
	}
	var origins []layout.Origin
	if o := c.source.origin(); o != (layout.Origin{}) {
		origins = append(origins, o)
	}
	a, entries, err := layout.CopyOf(f, desc, raw, origins...)
	return &content{Artifact: a, entries: entries, model: model}, err
}

// saysCarton reports whether an image manifest says that it is a carton's.
func saysCarton(raw []byte) bool {
	m, err := layout.ParseManifest(raw)
	return err == nil && (m.Annotations[convert.AnnotationMapping] != "" ||
		m.Annotations[convert.AnnotationModelHash] != "")
}

// artifact makes of what was opened what is pushed, and checks what is known of it.
func (w *content) artifact(ctx context.Context) (*layout.Artifact, error) {
	if w.src == nil {
		return w.Artifact, nil
	}
	forms, err := convert.Copy(ctx, w.src, convert.Options{})
	if err != nil {
		return nil, err
	}
	return forms.Artifact, nil
}
