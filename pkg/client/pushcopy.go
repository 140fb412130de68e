package client

import (
	"context"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/opencontainers/go-digest"
)

// planCopy plans the push of an artifact as it is, and of an image form that is
// made of it as [Image] makes it. So the image form has the digest of one that
// was made where the artifact comes from, of the same options.
func (p *push) planCopy(ctx context.Context, src *convert.Source) (*convert.Forms, error) {
	forms, err := convert.Copy(ctx, src)
	if err != nil || !p.opts.Mapping.Image {
		return forms, err
	}
	subject := p.opts.Mapping.ImageSubject
	if p.imagePlan, err = convert.PlanImage(ctx, src, convert.ImageOptions{Subject: subject}); err != nil {
		return nil, err
	}
	p.imaging = &imaging{
		opts: ImageOptions{
			Subject: subject, NoClobber: p.opts.NoClobber, Concurrency: p.opts.Concurrency, Progress: p.opts.Progress,
		},
		tags:   p.imageTags,
		stored: map[digest.Digest]bool{},
	}
	return forms, nil
}
