package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
)

// Push sends the carton that source names to ref, which [location.ParseDestination]
// reads: "host/repository:tag", with more tags behind commas, or the same in an
// image layout. Bytes that are there already are not sent, and not read.
//
// With Mapping.Image it pushes the image form of the carton too, which shares the
// artifact's blobs; both tags move, the artifact's last.
//
// An artifact is copied as it is, so that the copy has its digest, unless Mapping
// asks for a form (convert.Options KeepsForm): then another one is made of the
// carton. What is checked of a copy is what convert.Copy says.
//
// A carton that [carton.Check] finds errors in is not pushed, unless
// Mapping.AllowInvalid says so. What only the format's loader fails on is pushed, and
// is among the warnings: a registry is to hold what there is, be it for another
// loader. With NoClobber, a tag that points to something else is an error wrapping
// layout.ErrTagExists; a push of what is there already is none.
func (c *Client) Push(ctx context.Context, source, ref string, opts PushOptions) (*PushResult, error) {
	from, err := location.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	return c.pushFrom(ctx, from, ref, opts)
}

// parseArtifact says which artifact ref names.
func parseArtifact(ref string) (location.Location, error) {
	loc, err := location.Parse(ref)
	if err == nil && !loc.IsArtifact() {
		err = loc.WantArtifact()
	}
	return loc, err
}

// pushFrom opens a source and pushes it.
func (c *Client) pushFrom(
	ctx context.Context, from location.Location, ref string, opts PushOptions,
) (*PushResult, error) {
	p := &push{verb: "push", opts: opts, name: from.Redacted(), call: c.call()}
	to, err := p.destination(ref)
	if err == nil {
		err = p.apart(from, to)
	}
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if p.site, err = c.site(ctx, to, p.opts.opening()); err != nil {
		return nil, fmt.Errorf("push %s: %w", to, err)
	}
	src, err := p.call.open(ctx, from, OpenOptions{
		preferred: p.site, readsConfig: opts.Mapping.KeepsForm(), Trust: opts.Trust, Signature: opts.Signature,
	})
	if err != nil {
		return nil, fmt.Errorf("push %s: %w", from.Redacted(), err)
	}
	defer src.Close()
	p.src, p.from = src.Source, src.loc
	return p.run(ctx)
}

// PushSource is Push of a carton that is open. name is what errors call it.
func (c *Client) PushSource(
	ctx context.Context, src carton.Source, name, ref string, opts PushOptions,
) (*PushResult, error) {
	p := &push{verb: "push", opts: opts, src: src, name: name, call: c.call()}
	to, err := p.destination(ref)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if p.site, err = c.site(ctx, to, p.opts.opening()); err != nil {
		return nil, fmt.Errorf("push %s: %w", to, err)
	}
	return p.run(ctx)
}

// apart refuses to write into what is read. A place that is both may be pushed to;
// an archive of all that it holds is not replaced by one of less.
func (p *push) apart(from, to location.Location) error {
	switch {
	case from.Kind == to.Kind && to.IsLocal() && sameFile(from.Path, to.Path):
		p.opts.Force, p.intoItself = false, true
	case to.IsLocal():
		return refuseInside(from, to.Path)
	}
	return nil
}

// push is one push, or copy, under way.
type push struct {
	verb string // for errors
	opts PushOptions
	src  carton.Source    // nil where what is copied is no carton
	raw  *layout.Artifact // that, then
	name string           // of src, for errors
	from location.Location
	site *site
	tags []string
	// intoItself: it goes to the file or folder that it is read from.
	intoItself bool
	// call reached src and site.
	call *call
	// imageTags are those of the image form; nil where none is pushed.
	imageTags  []string
	images     []*tagged // what those point to, nil where there is no such tag
	unloadable []string  // why the format's loader fails on it
	left       []string  // image forms of other models, beside the tags that move

	// What only a copy has.
	image    *layout.Artifact // the image form that goes along, or nil
	with     []companion      // what else does
	warnings []string
	there    bool // it is copied onto itself
}

// destination says where a push goes, and under which tags.
func (p *push) destination(ref string) (to location.Location, err error) {
	if err := p.opts.check(); err != nil {
		return to, err
	}
	if to, p.tags, err = location.ParseDestination(ref); err != nil {
		return to, err
	}
	p.opts.Mapping.LinkOrigins = slices.Concat(p.opts.Mapping.LinkOrigins, p.call.linkRepos)
	if p.opts.Mapping.Image {
		p.imageTags, err = imageTags(to, p.tags, p.opts.ImageTag)
	}
	return to, err
}

func (p *push) run(ctx context.Context) (*PushResult, error) {
	start := time.Now()
	if p.src != nil && !p.opts.Mapping.AllowInvalid {
		if err := p.check(ctx); err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.verb, p.name, err)
		}
	}
	if p.opts.Signer != nil && p.site.archive != nil {
		err := fmt.Errorf("push %s: is an archive, which is written whole, so that nothing in it can be signed",
			p.site.loc)
		return nil, hint.With(err, "push into an image layout, oci:DIR, and copy that into the archive with %s",
			hint.Recursive)
	}
	if err := p.checkTags(ctx); err != nil {
		return nil, p.blame(err)
	}
	forms, result, err := p.plan(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", p.verb, p.name, err)
	}
	if err := p.checkDigest(forms.Artifact); err != nil {
		return nil, err
	}
	if err := p.checkImage(ctx, forms); err != nil {
		return nil, p.blame(err)
	}
	if p.opts.Planned != nil {
		p.opts.Planned(result)
	}
	switch {
	case p.there:
		result.exists()
	case p.opts.DryRun:
		err = p.ask(ctx, forms, result)
	case p.site.archive != nil:
		err = p.fill(ctx, forms, result)
	default:
		err = p.sendAll(ctx, forms, result)
	}
	if err != nil {
		return nil, p.blame(err)
	}
	result.Seconds, result.BytesDownloaded = seconds(start), p.call.received.Load()
	return result, nil
}

// checkDigest wants the digest that the place was named with.
func (p *push) checkDigest(art *layout.Artifact) error {
	want := p.site.loc.Digest
	if want == "" || want == art.Digest {
		return nil
	}
	err := fmt.Errorf("%s %s: the artifact's digest: got %s, want %s", p.verb, p.name, art.Digest, want)
	if p.verb == copyVerb {
		return hint.With(err, "a copy has the digest of what is copied; copy it to a tag")
	}
	return hint.With(err, "other options, such as %s, give other digests; or push to a tag", hint.Layers)
}

// modelHash returns the model's identity, "" of what is no carton.
func (p *push) modelHash() string {
	if p.src == nil {
		return ""
	}
	return p.src.Manifest().ModelHash()
}

// blame says whose fault an error of a transfer is: the carton's, where it is
// about a member or a layer of it, else the place's.
func (p *push) blame(err error) error {
	var member *carton.Error
	var layer *convert.LayerError
	switch {
	case errors.As(err, &member):
	case errors.As(err, &layer):
		return fmt.Errorf("%s %s: %w", p.verb, p.name, layer)
	default:
		return fmt.Errorf("%s %s: %w", p.verb, p.site.loc, p.explainRefusal(err))
	}
	return hint.Add(fmt.Errorf("%s %s: %w", p.verb, p.name, member), hint.Of(err)...)
}

// check refuses a carton that would not load.
func (p *push) check(ctx context.Context) error {
	findings, err := carton.Check(ctx, p.src)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range findings {
		switch f.Severity {
		case carton.SeverityError:
			errs = append(errs, f.Err)
		case carton.SeverityLoader:
			p.unloadable = append(p.unloadable, f.Err.Error())
		case carton.SeverityWarning:
		}
	}
	if len(errs) == 0 {
		return nil
	}
	err = errs[0]
	if len(errs) > 1 {
		err = hint.With(err, "there are %d more: %s %s", len(errs)-1, hint.Verify, p.name)
	}
	if errors.Is(err, carton.ErrChecksum) {
		return err
	}
	return hint.With(err, "%s pushes it all the same", hint.AllowInvalid)
}

// checkTags refuses what the tags that are there speak against, before anything
// is read.
func (p *push) checkTags(ctx context.Context) error {
	store, modelHash := p.site.store, p.modelHash()
	switch {
	case p.there:
	case len(p.imageTags) > 0:
		var err error
		p.images, err = checkImageTags(ctx, store, p.imageTags)
		if err == nil && p.opts.ImageTag != "" {
			p.left, err = leftBehind(ctx, store, p.tags, modelHash)
		}
		p.left = slices.DeleteFunc(p.left, func(tag string) bool { return slices.Contains(p.imageTags, tag) })
		return err
	case !p.opts.LeaveImage:
		return p.refuseDrift(ctx)
	}
	return nil
}

// plan makes the artifact and its image form, and what is known of the push
// before it begins.
func (p *push) plan(ctx context.Context) (*convert.Forms, *PushResult, error) {
	if p.raw != nil {
		forms := &convert.Forms{Artifact: p.raw}
		for _, l := range p.raw.Layers {
			forms.Paths = append(forms.Paths, []string{l.Name})
		}
		return forms, p.expected(forms), nil
	}
	original, isArtifact := p.src.(*convert.Source)
	copied := isArtifact && p.opts.Mapping.KeepsForm() && !original.Wrapped()
	var forms *convert.Forms
	var err error
	if copied {
		forms, err = convert.Copy(ctx, original, p.opts.Mapping)
	} else {
		forms, err = convert.Build(ctx, p.src, p.opts.Mapping)
	}
	if err != nil {
		return nil, nil, err
	}
	if p.image != nil {
		forms.Image, forms.Shared = p.image, sharesLayers(forms.Artifact, p.image)
	}
	result := p.expected(forms)
	result.Warnings = slices.Concat(p.unloadable, result.Warnings)
	if isArtifact {
		for _, f := range original.Findings() {
			result.Warnings = append(result.Warnings, f.Err.Error())
		}
	}
	if isArtifact {
		result.Source = &SourceArtifact{
			Reference: p.from.Redacted(), Digest: original.Descriptor().Digest,
			Copied: copied,
		}
	}
	return forms, result, nil
}

// expected says what a push will do, as far as that is known before it begins.
func (p *push) expected(forms *convert.Forms) *PushResult {
	art := forms.Artifact
	result := &PushResult{
		Reference: p.site.loc.String(), Tags: p.tags, Digest: art.Digest, ModelHash: p.modelHash(),
		ArtifactType: art.ArtifactType, Size: art.Size, Layers: []PushedLayer{}, DryRun: p.opts.DryRun,
		Warnings: p.warnings,
	}
	for _, c := range p.with {
		result.With = append(result.With, c.result())
	}
	if p.raw != nil {
		result.Source = &SourceArtifact{Reference: p.from.Redacted(), Digest: art.Digest, Copied: true}
	}
	for i, l := range art.Layers {
		result.Layers = append(result.Layers, PushedLayer{
			Paths: forms.Paths[i], MediaType: l.MediaType, Digest: l.Digest, Size: l.Size,
			Extra: l.Annotations[convert.AnnotationExtra] != "",
		})
	}
	for _, n := range forms.Notes {
		result.Warnings = append(result.Warnings, errtext.Quote(n.Member)+": "+n.Text)
	}
	if forms.Image != nil {
		result.Image = newPushedImage(p.site.loc, p.imageTags, forms)
		result.Image.Left = p.left
		if p.site.archive != nil && forms.Image.Complete != nil {
			result.Warnings = append(result.Warnings,
				"the image form is read twice: an archive must know what it will hold before it is written")
		}
	}
	return result
}
