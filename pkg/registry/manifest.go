package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

const digestHeader = "Docker-Content-Digest"

// manifestTypes are what a registry is asked for. Indexes and Docker's are
// among them, so that who reads can say what was found.
var manifestTypes = []string{
	ocispec.MediaTypeImageManifest,
	ocispec.MediaTypeImageIndex,
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
	"application/vnd.oci.artifact.manifest.v1+json",
}

// Resolve returns what a tag or digest points to. It asks with HEAD, and with
// GET where a registry's answer to HEAD says too little. What it returns for
// an index or any other kind of manifest is returned as it is.
func (r *Repository) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	return r.lookUp(ctx, reference, r.resolve)
}

// ResolveManifest is Resolve and FetchManifest in one request.
func (r *Repository) ResolveManifest(
	ctx context.Context, reference string,
) (desc ocispec.Descriptor, raw []byte, err error) {
	desc, err = r.lookUp(ctx, reference,
		func(ctx context.Context, u *url.URL, want digest.Digest) (desc ocispec.Descriptor, err error) {
			desc, raw, err = r.getManifest(ctx, u, want, manifestTypes)
			return desc, err
		})
	return desc, raw, err
}

// lookUp asks for what a tag or digest points to.
func (r *Repository) lookUp(
	ctx context.Context, reference string, ask func(context.Context, *url.URL, digest.Digest) (
		ocispec.Descriptor, error),
) (ocispec.Descriptor, error) {
	u, want, err := r.manifestURL(reference)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	desc, err := read(ctx, r, func(ctx context.Context) (ocispec.Descriptor, error) { return ask(ctx, u, want) })
	if err != nil {
		return desc, fmt.Errorf("%s: %w", named(reference), err)
	}
	return desc, nil
}

// named is how errors call what a manifest was asked for by.
func named(reference string) string {
	if CheckTag(reference) == nil {
		return "tag " + reference
	}
	return reference
}

// manifestURL returns where a tag or digest is asked for, and the digest. A registry
// is not asked whether a repository has one manifest alone.
func (r *Repository) manifestURL(reference string) (*url.URL, digest.Digest, error) {
	want := digest.Digest("")
	if reference == "" {
		return nil, "", fmt.Errorf("%s without a tag or a digest: %w", r.Name(), layout.ErrNotFound)
	}
	if CheckTag(reference) != nil {
		want = digest.Digest(reference)
		if err := layout.CheckDigest(want); err != nil {
			return nil, "", badReference(reference, "want a tag or a digest")
		}
	}
	u, err := r.urlWith("", "manifests/"+reference)
	return u, want, err
}

func (r *Repository) resolve(ctx context.Context, u *url.URL, want digest.Digest) (ocispec.Descriptor, error) {
	ctx = oneWork(ctx)
	resp, err := r.ask(ctx, http.MethodHead, u, accept(manifestTypes...))
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if resp.StatusCode == http.StatusNotFound {
		return ocispec.Descriptor{}, r.host.answerError(resp)
	}
	desc, ok, err := describe(resp, want)
	resp.Body.Close()
	if err != nil || ok {
		return desc, err
	}
	desc, _, err = r.getManifest(ctx, u, want, manifestTypes)
	return desc, err
}

// describe reads what the headers of an answer to HEAD say, false where that is
// not enough.
func describe(resp *http.Response, want digest.Digest) (ocispec.Descriptor, bool, error) {
	desc := ocispec.Descriptor{Digest: digest.Digest(resp.Header.Get(digestHeader)), Size: resp.ContentLength}
	desc.MediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK {
		return desc, false, nil
	}
	if desc.Digest != "" && want != "" && desc.Digest != want {
		return desc, false, fmt.Errorf("manifest: got the digest %q, want %s: %w", said(desc.Digest), want,
			layout.ErrDigest)
	}
	if desc.Size > layout.MaxManifestBytes {
		return desc, false, fmt.Errorf("manifest: got %d bytes, want at most %d: %w", desc.Size,
			layout.MaxManifestBytes, layout.ErrLimit)
	}
	if desc.Digest == "" {
		desc.Digest = want
	}
	return desc, slices.Contains(manifestTypes, desc.MediaType) && desc.Size > 0 &&
		layout.CheckDigest(desc.Digest) == nil, nil
}

// accept makes one header of the types: not every registry reads a second.
func accept(types ...string) http.Header {
	return http.Header{"Accept": {strings.Join(types, ", ")}}
}

// FetchManifest returns an image manifest's bytes, of the digest and size that
// desc says, else an error wrapping layout.ErrDigest.
func (r *Repository) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	if err := layout.CheckDigest(desc.Digest); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if desc.Size > layout.MaxManifestBytes {
		return nil, fmt.Errorf("manifest: got %d bytes, want at most %d: %w", desc.Size, layout.MaxManifestBytes,
			layout.ErrLimit)
	}
	u, err := r.url(ctx, "manifests/"+desc.Digest.String())
	if err != nil {
		return nil, err
	}
	types := manifestTypes
	if desc.MediaType != "" && !slices.Contains(manifestTypes, desc.MediaType) {
		types = append([]string{desc.MediaType}, manifestTypes...)
	}
	got, b, err := r.getManifest(r.pull(ctx), u, desc.Digest, types)
	if err != nil {
		return nil, err
	}
	if got.Size != desc.Size {
		return nil, fmt.Errorf("manifest %s: got %d bytes, want %d: %w", desc.Digest, got.Size, desc.Size,
			layout.ErrDigest)
	}
	return b, nil
}

// getManifest fetches a manifest, and checks what it knows: want, where it is
// set, and the digest that the registry itself states.
func (r *Repository) getManifest(
	ctx context.Context, u *url.URL, want digest.Digest, types []string,
) (ocispec.Descriptor, []byte, error) {
	resp, b, err := r.get(ctx, u, accept(types...), layout.MaxManifestBytes)
	if err != nil {
		return ocispec.Descriptor{}, nil, fmt.Errorf("manifest: %w", err)
	}
	desc := ocispec.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}
	if want == "" {
		want = digest.Digest(resp.Header.Get(digestHeader))
	}
	if want != "" && want != desc.Digest {
		return desc, nil, fmt.Errorf("manifest: got %s, want %q: %w", desc.Digest, said(want), layout.ErrDigest)
	}
	desc.MediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if !slices.Contains(manifestTypes, desc.MediaType) {
		// Some registries and every plain file server call it JSON or text.
		var body struct {
			MediaType string `json:"mediaType"`
		}
		if json.Unmarshal(b, &body) == nil && body.MediaType != "" {
			desc.MediaType = body.MediaType
		}
	}
	return desc, b, nil
}

// get reads a whole answer of at most limit bytes, again where it broke off.
func (r *Repository) get(
	ctx context.Context, u *url.URL, header http.Header, limit int64,
) (*http.Response, []byte, error) {
	policy := r.client.opts.Policy
	ctx = oneWork(ctx)
	tries := triesOf(ctx)
	for {
		resp, err := r.ask(ctx, http.MethodGet, u, header)
		if err != nil {
			return nil, nil, err
		}
		if resp.StatusCode != http.StatusOK {
			return nil, nil, r.host.answerError(resp)
		}
		b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
		resp.Body.Close()
		switch {
		case err == nil && int64(len(b)) > limit:
			return nil, nil, fmt.Errorf("got over %d bytes: %w", limit, layout.ErrLimit)
		case err == nil:
			return resp, b, nil
		case ctx.Err() != nil || tries.spent(policy):
			return nil, nil, r.host.requestError(err)
		}
		delay, _ := policy.Delay(tries.failures, nil) // no answer asks for a longer one
		if err := policy.Pause(ctx, tries.failures, delay, err); err != nil {
			return nil, nil, err
		}
	}
}
