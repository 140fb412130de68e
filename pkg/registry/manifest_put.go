package registry

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// PutManifest stores an image manifest under its tags: by tag where there is
// one, else by digest first. Where it has a subject, it is listed with that one: by the
// registry, or in the index that the specification has clients keep.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-manifests-with-subject
func (r *Repository) PutManifest(
	ctx context.Context, desc ocispec.Descriptor, content []byte, opts layout.PutOptions,
) error {
	tags := opts.Tags
	if err := layout.CheckDigest(desc.Digest); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if got := digest.FromBytes(content); got != desc.Digest || desc.Size != int64(len(content)) {
		return fmt.Errorf("manifest: got %s (%d bytes), want %s (%d bytes): %w", got, len(content), desc.Digest,
			desc.Size, layout.ErrDigest)
	}
	for _, tag := range tags {
		if err := CheckTag(tag); err != nil {
			return badReference(tag, "%v", err)
		}
	}
	if opts.NoClobber {
		if err := layout.CheckTags(ctx, r, desc.Digest, tags...); err != nil {
			return err
		}
	}
	names := tags
	if len(tags) != 1 {
		names = append([]string{desc.Digest.String()}, tags...)
	}
	for _, name := range names {
		if err := r.putManifest(ctx, desc, content, name); err != nil {
			return fmt.Errorf("manifest %s: %w", name, err)
		}
	}
	if err := r.listReferrer(ctx, desc, content); err != nil {
		return fmt.Errorf("list %s with its subject: %w", desc.Digest, err)
	}
	return nil
}

// putManifest stores a manifest under a tag or its digest.
func (r *Repository) putManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, name string) error {
	u, err := r.url(ctx, "manifests/"+name)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(r.push(ctx), http.MethodPut, u.String(), bytes.NewReader(content))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", desc.MediaType)
	resp, err := r.meta.Do(req)
	if err != nil {
		return r.host.requestError(err)
	}
	switch resp.StatusCode {
	case http.StatusCreated, http.StatusOK, http.StatusAccepted, http.StatusNoContent:
	default:
		return r.host.answerErrorOf(resp, storingManifest)
	}
	defer resp.Body.Close()
	got := resp.Header.Get(digestHeader)
	if got != "" && got != desc.Digest.String() {
		return fmt.Errorf("%s stored %q, want %s: %w", r.host.host, said(got), desc.Digest, layout.ErrDigest)
	}
	if resp.StatusCode == http.StatusCreated && got == "" {
		name = desc.Digest.String() // the tag may be somebody else's by now
	}
	if resp.StatusCode != http.StatusCreated || got == "" {
		return r.confirm(ctx, desc, name, resp.StatusCode)
	}
	return nil
}

// confirm asks for a manifest that was answered with another status than the
// specification's, or without its digest: something before the registry may say yes
// to everything.
func (r *Repository) confirm(ctx context.Context, desc ocispec.Descriptor, name string, status int) error {
	is, err := r.Resolve(r.push(ctx), name)
	switch {
	case err == nil && is.Digest == desc.Digest:
		return nil
	case status == http.StatusCreated && isDenied(err): // to somebody who may write and not read
		return nil
	case err == nil:
		err = fmt.Errorf("%s answered %d to it, and has %s in its place: %w", r.host.host, status, is.Digest,
			layout.ErrDigest)
	default:
		err = fmt.Errorf("%s answered %d to it, and does not show it: %w", r.host.host, status, err)
	}
	return hint.With(err, "push again; if it stays so, something between here and the registry answers in its place")
}
