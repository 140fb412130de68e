package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Stat returns a blob's size, an error wrapping layout.ErrNotFound where the
// registry has none. It asks with HEAD; where that is refused or says too
// little, for the first byte.
func (r *Repository) Stat(ctx context.Context, dgst digest.Digest) (int64, error) {
	if err := layout.CheckDigest(dgst); err != nil {
		return 0, fmt.Errorf("blob: %w", err)
	}
	u, err := r.url(ctx, "blobs/"+dgst.String())
	if err != nil {
		return 0, err
	}
	size, err := read(ctx, r, func(ctx context.Context) (int64, error) { return r.stat(ctx, u, dgst) })
	if err != nil {
		return 0, fmt.Errorf("blob %s: %w", dgst, err)
	}
	return size, nil
}

// Has reports whether the registry has a blob, which it has checked by its digest.
// One of another size is layout.ErrDigest: no push can replace it.
func (r *Repository) Has(ctx context.Context, desc ocispec.Descriptor, _ func(off int64)) (bool, error) {
	size, err := r.Stat(ctx, desc.Digest)
	switch {
	case errors.Is(err, layout.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case size != desc.Size:
		return false, fmt.Errorf("blob %s: is %d bytes in %s, want %d: %w", desc.Digest, size, r.host.host, desc.Size,
			layout.ErrDigest)
	}
	return true, nil
}

// Local implements layout.Store: a registry is asked over the network.
func (r *Repository) Local() bool { return false }

func (r *Repository) stat(ctx context.Context, u *url.URL, dgst digest.Digest) (int64, error) {
	ctx = oneWork(ctx)
	resp, err := r.ask(ctx, http.MethodHead, u, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return 0, r.host.answerError(resp)
	case resp.StatusCode == http.StatusOK && resp.ContentLength >= 0:
		if got := resp.Header.Get(digestHeader); got != "" && got != dgst.String() {
			return 0, fmt.Errorf("got the digest %q: %w", said(got), layout.ErrDigest)
		}
		return resp.ContentLength, nil
	}
	return r.statByRange(ctx, u)
}

// statByRange learns a blob's size from a request for its first byte.
func (r *Repository) statByRange(ctx context.Context, u *url.URL) (int64, error) {
	resp, err := r.ask(ctx, http.MethodGet, u, http.Header{"Range": {"bytes=0-0"}})
	if err != nil {
		return 0, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		resp.Body.Close()
		if resp.ContentLength >= 0 {
			return resp.ContentLength, nil
		}
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		resp.Body.Close()
		_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
		if n, err := strconv.ParseInt(total, 10, 64); err == nil && n >= 0 {
			return n, nil
		}
	default:
		return 0, r.host.answerError(resp)
	}
	return 0, fmt.Errorf("%s does not say how large it is: %w", r.host.host, layout.ErrFormat)
}

// Mount makes a blob of another repository of the same registry appear here.
// It returns false where the registry would not, or says that it did and has no such
// blob then; an upload that it opened instead is what Push of that blob goes into.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#mounting-a-blob-from-another-repository
func (r *Repository) Mount(ctx context.Context, desc ocispec.Descriptor, from layout.Origin) (bool, error) {
	if apiHost(from.Registry) != r.host.host || from.Repository == r.name.Repository {
		return false, nil
	}
	if CheckName(from.Registry, from.Repository) != nil || layout.CheckDigest(desc.Digest) != nil {
		return false, nil
	}
	u, err := r.url(ctx, "blobs/uploads/")
	if err != nil {
		return false, err
	}
	u.RawQuery = url.Values{"mount": {desc.Digest.String()}, "from": {from.Repository}}.Encode()
	source := r.name
	source.Repository = from.Repository
	scoped := auth.AppendRepositoryScope(r.push(ctx), source, auth.ActionPull)
	resp, err := r.ask(scoped, http.MethodPost, u, nil)
	if err != nil {
		if isAnswer(err) {
			return false, nil // the token server's no is the registry's
		}
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusCreated: // but nobody has counted its bytes: some registries say so of what they don't have
		return r.Has(r.push(ctx), desc, nil)
	case http.StatusAccepted:
		if s, err := r.session(resp, u); err == nil {
			r.keepSession(ctx, desc.Digest, s)
		}
	}
	return false, nil
}

// OpenRange opens n bytes of a blob from offset off; n < 0 means to the end.
// It survives what may pass, and verifies nothing. Each request goes to the
// registry itself: the address that it redirects to may expire. An answer of another
// size is httprange.ErrAnswer and not ErrDigest: it may be a proxy's error page, and
// says nothing of the blob. What is small comes over the connection that manifests come
// over: a new one takes as long as such an answer, or three times that with TLS.
func (r *Repository) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	if err := layout.CheckDigest(desc.Digest); err != nil {
		return nil, fmt.Errorf("blob: %w", err)
	}
	u, err := r.url(ctx, "blobs/"+desc.Digest.String())
	if err != nil {
		return nil, err
	}
	client := r.blob
	if size := min(cmp.Or(max(n, 0), desc.Size), desc.Size-off); size <= smallBytes {
		client = r.small
	}
	g := &httprange.Getter{
		Do:            r.getBlob(client),
		Policy:        r.client.opts.Policy,
		CheckResponse: r.host.answerError,
		Answered:      &r.host.reached,
	}
	body, err := g.Open(r.pull(ctx), func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	}, off, n, desc.Size)
	if err != nil {
		return nil, err
	}
	return body, nil
}

// smallBytes is how much of a blob comes over the connection for metadata.
const smallBytes = 256 << 10

func (r *Repository) getBlob(client *auth.Client) func(req *http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := client.Do(req)
		if err != nil {
			return nil, r.host.requestError(err)
		}
		return resp, nil
	}
}

// isAnswer reports whether err is what a registry or its token server said.
func isAnswer(err error) bool {
	var answer *Error
	var login *loginError
	return errors.As(err, &answer) || errors.As(err, &login)
}
