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
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
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

// Copy is Push of an artifact as it is: the copy has its digest. A source that is no
// artifact, and options that ask for a form, are refused.
func (c *Client) Copy(ctx context.Context, source, ref string, opts PushOptions) (*PushResult, error) {
	if !opts.Mapping.KeepsForm() {
		return nil, errors.New("copy: got options that ask for a form, and a copy has that of its source")
	}
	from, err := parseArtifact(source)
	if err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	return c.pushFrom(ctx, from, ref, opts)
}

// parseArtifact says which artifact ref names.
func parseArtifact(ref string) (location.Location, error) {
	loc, err := location.Parse(ref)
	if err == nil && !loc.IsArtifact() {
		err = location.Errorf(loc.Redacted(), "got a carton, want an artifact in a registry or an image layout")
	}
	return loc, err
}

// pushFrom opens a source and pushes it.
func (c *Client) pushFrom(ctx context.Context, from location.Location, ref string, opts PushOptions) (*PushResult, error) {
	p := &push{opts: opts, name: from.Redacted(), call: c.call()}
	to, err := p.destination(ref)
	if itself := from.Kind == to.Kind && to.IsLocal() && sameFile(from.Path, to.Path); itself {
		p.opts.Force = false // which would take from an archive what is not pushed
	} else if err == nil && to.IsLocal() {
		err = refuseInside(from, to.Path)
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
func (c *Client) PushSource(ctx context.Context, src carton.Source, name, ref string, opts PushOptions) (*PushResult, error) {
	p := &push{opts: opts, src: src, name: name, call: c.call()}
	to, err := p.destination(ref)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if p.site, err = c.site(ctx, to, p.opts.opening()); err != nil {
		return nil, fmt.Errorf("push %s: %w", to, err)
	}
	return p.run(ctx)
}

// push is one push under way.
type push struct {
	opts PushOptions
	src  carton.Source
	name string // of src, for errors
	from location.Location
	site *site
	tags []string
	// call reached src and site.
	call *call
	// imageTags are those of the image form; nil where none is pushed.
	imageTags  []string
	images     []*tagged // what those point to, nil where there is no such tag
	unloadable []string  // why the format's loader fails on it
	left       []string  // image forms of other models, beside the tags that move
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
	if !p.opts.Mapping.AllowInvalid {
		if err := p.check(ctx); err != nil {
			return nil, fmt.Errorf("push %s: %w", p.name, err)
		}
	}
	if p.opts.Signer != nil && p.site.archive != nil {
		return nil, fmt.Errorf("push %s: an archive is written once, and can't be signed behind that", p.site.loc)
	}
	if err := p.checkTags(ctx); err != nil {
		return nil, p.blame(err)
	}
	forms, result, err := p.plan(ctx)
	if err != nil {
		return nil, fmt.Errorf("push %s: %w", p.name, err)
	}
	art := forms.Artifact
	if want := p.site.loc.Digest; want != "" && want != art.Digest {
		err := fmt.Errorf("push %s: the artifact's digest: got %s, want %s", p.name, art.Digest, want)
		return nil, hint.With(err, "other options, such as %s, give other digests; or push to a tag", hint.Layers)
	}
	if err := p.checkImage(ctx, forms); err != nil {
		return nil, p.blame(err)
	}
	if p.opts.Planned != nil {
		p.opts.Planned(result)
	}
	switch {
	case p.opts.DryRun:
		err = p.ask(ctx, forms, result)
	case p.site.archive != nil:
		err = p.fill(ctx, forms, result)
	default:
		err = p.sendAll(ctx, forms, result)
	}
	if err == nil && p.opts.Signer != nil && !p.opts.DryRun {
		err = p.sign(ctx, result)
	}
	if err != nil {
		return nil, p.blame(err)
	}
	result.Seconds, result.BytesDownloaded = seconds(start), p.call.received.Load()
	return result, nil
}

// blame says whose fault an error of a transfer is: the carton's, where it is
// about a member or a layer of it, else the place's.
func (p *push) blame(err error) error {
	var member *carton.Error
	var layer *convert.LayerError
	switch {
	case errors.As(err, &member):
	case errors.As(err, &layer):
		return fmt.Errorf("push %s: %w", p.name, layer)
	default:
		return fmt.Errorf("push %s: %w", p.site.loc, explainRefusal(err, p.opts.Mapping))
	}
	return hint.Add(fmt.Errorf("push %s: %w", p.name, member), hint.Of(err)...)
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
	store, modelHash := p.site.store, p.src.Manifest().ModelHash()
	switch {
	case p.opts.Mapping.Image:
		var err error
		p.images, err = checkImageTags(ctx, store, p.imageTags)
		if err == nil && p.opts.ImageTag != "" {
			p.left, err = leftBehind(ctx, store, p.tags, modelHash)
		}
		p.left = slices.DeleteFunc(p.left, func(tag string) bool { return slices.Contains(p.imageTags, tag) })
		return err
	case !p.opts.LeaveImage:
		return refuseDrift(ctx, store, p.tags, modelHash, p.opts.Mapping.Compat)
	}
	return nil
}

// plan makes the artifact and its image form, and what is known of the push
// before it begins.
func (p *push) plan(ctx context.Context) (*convert.Forms, *PushResult, error) {
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
	result := p.expected(forms)
	result.Warnings = append(p.unloadable, result.Warnings...)
	if isArtifact {
		for _, f := range original.Findings() {
			result.Warnings = append(result.Warnings, f.Err.Error())
		}
	}
	if isArtifact {
		result.Source = &SourceArtifact{Reference: p.from.Redacted(), Digest: original.Descriptor().Digest, Copied: copied}
	}
	return forms, result, nil
}

// expected says what a push will do, as far as that is known before it begins.
func (p *push) expected(forms *convert.Forms) *PushResult {
	art := forms.Artifact
	result := &PushResult{
		Reference: p.site.loc.String(), Tags: p.tags, Digest: art.Digest, ModelHash: p.src.Manifest().ModelHash(),
		ArtifactType: art.ArtifactType, Size: art.Size, DryRun: p.opts.DryRun,
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
	}
	return result
}

// fill makes an archive of all that is pushed, unless it is there.
func (p *push) fill(ctx context.Context, forms *convert.Forms, result *PushResult) error {
	w := p.site.archive
	contents := []layout.ArchiveContent{{Artifact: forms.Artifact, Tags: p.tags}}
	if forms.Image != nil {
		contents = append(contents, layout.ArchiveContent{Artifact: forms.Image, Tags: p.imageTags})
	}
	there, err := w.Begin(ctx, contents)
	if there {
		result.exists()
		return nil
	}
	if err == nil {
		err = p.sendAll(ctx, forms, result)
	}
	return w.End(err)
}

// sendAll pushes the artifact, and its image form where that was asked for.
func (p *push) sendAll(ctx context.Context, forms *convert.Forms, result *PushResult) error {
	if forms.Image != nil {
		return p.sendBoth(ctx, forms, result)
	}
	return p.send(ctx, forms.Artifact, result)
}

// send pushes the artifact.
func (p *push) send(ctx context.Context, art *layout.Artifact, result *PushResult) error {
	pushed, err := layout.Push(ctx, p.site.store, art, layout.PushOptions{
		Tags: p.tags, Concurrency: p.opts.Concurrency, NoClobber: p.opts.NoClobber, Progress: p.opts.Progress,
	})
	if err == nil {
		result.took(pushed)
	}
	return err
}

// exists notes that there was nothing to do.
func (r *PushResult) exists() {
	r.AlreadyThere = true
	for i := range r.Layers {
		r.Layers[i].Status = string(layout.Exists)
	}
}

// sign signs what was pushed.
func (p *push) sign(ctx context.Context, result *PushResult) error {
	model, err := signModel(ctx, p.src, p.opts.Signer)
	if err != nil {
		return err
	}
	subjects := []ocispec.Descriptor{{MediaType: ocispec.MediaTypeImageManifest, Digest: result.Digest, Size: result.Size}}
	if result.Image != nil {
		image, err := p.site.store.Resolve(ctx, string(result.Image.Digest))
		if err != nil {
			return err
		}
		subjects = append(subjects, image)
	}
	result.Signatures, err = signSubjects(ctx, p.site.store, subjects, p.opts.Signer, model)
	if err != nil {
		err = fmt.Errorf("is pushed, and not signed: %w", err)
	}
	return err
}

// took notes what became of the artifact's blobs.
func (r *PushResult) took(pushed *layout.PushResult) {
	status := map[digest.Digest]string{}
	for _, l := range pushed.Layers {
		status[l.Digest] = string(l.Status)
	}
	for i := range r.Layers {
		r.Layers[i].Status = status[r.Layers[i].Digest]
	}
	r.BytesUploaded, r.BytesResumed = pushed.BytesUploaded, pushed.BytesResumed
}

// ask finds out what a push would send, and whether the place would take it.
func (p *push) ask(ctx context.Context, forms *convert.Forms, result *PushResult) error {
	if err := p.site.store.CheckArtifact(ctx, forms.Artifact); err != nil {
		return err
	}
	status := map[digest.Digest]string{}
	for i := range result.Layers {
		l := &result.Layers[i]
		if status[l.Digest] == "" {
			there, err := p.site.store.Has(ctx, forms.Artifact.Layers[i].Descriptor, nil)
			if err != nil {
				return err
			}
			status[l.Digest] = map[bool]string{true: string(layout.Exists), false: "missing"}[there]
		}
		l.Status = status[l.Digest]
	}
	return nil
}

// seconds returns the time since start, to the millisecond.
func seconds(start time.Time) float64 {
	return time.Since(start).Round(time.Millisecond).Seconds()
}
