package registry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Delete implements [layout.Store]. Not every registry deletes, and many of those that
// do, manifests but no tags alone: layout.ErrUnsupported. Blobs are the registry's to
// clean up. A manifest that names a subject is taken from the index of referrers, too.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#content-management
func (r *Repository) Delete(ctx context.Context, reference string, opts layout.DeleteOptions) error {
	_, dgst, err := r.manifestURL(reference)
	if err != nil {
		return err
	}
	if dgst == "" {
		return r.delete(ctx, reference)
	}
	desc, content, err := r.ResolveManifest(ctx, reference)
	if err != nil {
		return err
	}
	if opts.KeepTagged {
		if err := layout.CheckUntagged(ctx, r, dgst); err != nil {
			return err
		}
	}
	if err := r.delete(ctx, reference); err != nil {
		return err
	}
	if subject, _ := layout.ReferrerOf(desc, content); subject != nil && layout.CheckDigest(subject.Digest) == nil {
		err = r.unlistReferrer(ctx, subject.Digest, dgst)
	}
	if err != nil {
		return fmt.Errorf("%s is deleted; take it from the list of its subject: %w", dgst, err)
	}
	return nil
}

// delete sends the request. It may be sent again: what is gone then was ours to delete.
func (r *Repository) delete(ctx context.Context, reference string) error {
	u, err := r.url(ctx, "manifests/"+reference)
	if err != nil {
		return err
	}
	ctx = oneWork(r.remove(ctx))
	resp, err := r.send(ctx, http.MethodDelete, u, nil)
	if err != nil {
		return fmt.Errorf("delete %s: %w", named(reference), err)
	}
	switch {
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusAccepted,
		resp.StatusCode == http.StatusNoContent,
		resp.StatusCode == http.StatusNotFound && triesOf(ctx).failures > 0:
		resp.Body.Close()
		return nil
	}
	return fmt.Errorf("delete %s: %w", named(reference), r.host.answerErrorOf(resp, deleting))
}

// unlistReferrer takes a manifest from the index of its subject's referrers, where there
// is one.
func (r *Repository) unlistReferrer(ctx context.Context, subject, dgst digest.Digest) error {
	r.referring.Lock()
	defer r.referring.Unlock()
	return r.changeIndex(ctx, subject, func(index []byte) ([]byte, bool, error) {
		if index == nil {
			return nil, false, nil
		}
		return layout.DropReferrer(index, dgst)
	})
}
