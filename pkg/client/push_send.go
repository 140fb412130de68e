package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// fill makes an archive of all that is pushed, unless it is there.
func (p *push) fill(ctx context.Context, forms *convert.Forms, result *PushResult) error {
	w := p.site.archive
	if forms.Image != nil {
		var err error
		opts := layout.PushOptions{Concurrency: p.opts.Concurrency, Progress: p.opts.Progress}
		if forms.Image, err = layout.Complete(ctx, forms.Image, opts); err != nil {
			return fmt.Errorf("image form: %w", err)
		}
	}
	contents := []layout.ArchiveContent{{Artifact: forms.Artifact, Tags: p.tags}}
	if forms.Image != nil {
		contents = append(contents, layout.ArchiveContent{Artifact: forms.Image, Tags: p.imageTags})
	}
	for _, c := range p.with {
		contents = append(contents, layout.ArchiveContent{Artifact: c.Artifact, Tags: c.tags})
	}
	there, err := w.Begin(ctx, contents)
	if there {
		result.exists()
		return nil
	}
	if err == nil {
		err = p.sendAll(ctx, forms, result)
	} else if p.intoItself && errors.Is(err, layout.ErrExist) {
		err = layout.Unchanged(w.Path())
	}
	return w.End(err)
}

// sendAll pushes the artifact, and what goes with it. The order matters where it
// stops half-way: all content first, then signatures, then the tags of what belongs to
// the artifact, and the artifact's last, so that who reads it finds an image form and
// signatures that are as new.
func (p *push) sendAll(ctx context.Context, forms *convert.Forms, result *PushResult) error {
	store, art := p.site.store, forms.Artifact
	opts := layout.PushOptions{Concurrency: p.opts.Concurrency, Progress: p.opts.Progress}
	alone := forms.Image == nil && len(p.with) == 0 && p.opts.Signer == nil
	if alone {
		opts.Tags, opts.NoClobber = p.tags, p.opts.NoClobber
	} else if err := p.checkClobber(ctx, art); err != nil {
		return err
	}
	if err := p.sendWith(ctx, true, opts, result); err != nil {
		return err
	}
	pushed, err := layout.Push(ctx, store, art, opts)
	if err != nil {
		return err
	}
	result.took(pushed)
	if alone {
		return nil
	}
	opts.After = pushed
	if err := p.sendWith(ctx, false, opts, result); err != nil {
		return err
	}
	if err := p.checkClobber(ctx, art); err != nil {
		return err
	}
	subjects := []ocispec.Descriptor{art.Descriptor}
	if forms.Image != nil {
		image, err := p.sendImage(ctx, forms.Image, opts, result)
		if err != nil {
			return fmt.Errorf("image form: %w", err)
		}
		subjects = append(subjects, image)
	}
	if p.opts.Signer != nil {
		if err := p.sign(ctx, subjects, result); err != nil {
			return err
		}
	}
	if len(p.tags) == 0 {
		return nil
	}
	// The rest may have taken hours: the artifact's way is looked at once more.
	return store.PutManifest(ctx, art.Descriptor, art.Manifest,
		layout.PutOptions{Tags: p.tags, NoClobber: p.opts.NoClobber})
}

// checkClobber refuses to move the artifact's tags, where that was forbidden.
func (p *push) checkClobber(ctx context.Context, art *layout.Artifact) error {
	if !p.opts.NoClobber {
		return nil
	}
	return layout.CheckTags(ctx, p.site.store, art.Digest, p.tags...)
}

// sendImage pushes the image form, under its tags unless it is to be signed first.
func (p *push) sendImage(
	ctx context.Context, image *layout.Artifact, opts layout.PushOptions, result *PushResult,
) (ocispec.Descriptor, error) {
	if p.opts.Signer == nil {
		opts.Tags, opts.NoClobber = p.imageTags, p.opts.NoClobber
	}
	pushed, err := layout.Push(ctx, p.site.store, image, opts)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	result.count(pushed)
	result.Image.Digest = pushed.Descriptor.Digest
	return pushed.Descriptor, nil
}

// sendWith pushes what goes with a copy: what an index lists, first, or all else.
func (p *push) sendWith(ctx context.Context, first bool, opts layout.PushOptions, result *PushResult) error {
	for i := range p.with {
		c := &p.with[i]
		if c.first != first {
			continue
		}
		opts.Tags, opts.NoClobber = c.tags, p.opts.NoClobber
		pushed, err := layout.Push(ctx, p.site.store, c.Artifact, opts)
		if err != nil {
			return fmt.Errorf("%s %s: %w", c.kind, c.Digest, err)
		}
		result.count(pushed)
	}
	return nil
}

// count adds what was sent.
func (r *PushResult) count(pushed *layout.PushResult) {
	r.BytesUploaded += pushed.BytesUploaded
	r.BytesResumed += pushed.BytesResumed
}

// exists notes that there was nothing to do.
func (r *PushResult) exists() {
	r.AlreadyThere = true
	for i := range r.Layers {
		r.Layers[i].Status = string(layout.Exists)
	}
}

// sign signs what was pushed, the artifact and its image form, and points the tags of
// that one to it: a tag never points to what is yet to be signed, for a policy would
// refuse it there.
func (p *push) sign(ctx context.Context, subjects []ocispec.Descriptor, result *PushResult) error {
	store := p.site.store
	model, err := signModel(ctx, p.src, p.opts.Signer)
	if err == nil {
		result.Signatures, err = signSubjects(ctx, store, subjects, p.opts.Signer, model)
	}
	if err != nil {
		return fmt.Errorf("is there by its digest %s, and could not be signed, so that no tag was moved: %w",
			subjects[0].Digest, err)
	}
	for _, image := range subjects[1:] {
		_, raw, err := store.ResolveManifest(ctx, string(image.Digest))
		if err == nil {
			err = store.PutManifest(ctx, image, raw, layout.PutOptions{Tags: p.imageTags, NoClobber: p.opts.NoClobber})
		}
		if err != nil {
			return fmt.Errorf("image form: %w", err)
		}
	}
	return nil
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
	r.count(pushed)
}

// ask finds out what a push would send, and whether the place would take it.
func (p *push) ask(ctx context.Context, forms *convert.Forms, result *PushResult) error {
	if err := p.site.store.CheckArtifact(ctx, forms.Artifact); err != nil {
		return err
	}
	for _, c := range p.with {
		if err := p.site.store.CheckArtifact(ctx, c.Artifact); err != nil {
			return fmt.Errorf("%s %s: %w", c.kind, c.Digest, err)
		}
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
