package registry

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Repository is one repository of a registry. It may be used by many
// goroutines at once.
type Repository struct {
	client *Client
	host   *endpoint
	name   orasregistry.Reference // registry and repository

	writes atomic.Bool // only with the right to push does it show itself

	// meta asks small questions, blob moves bytes, and small moves a few of them over
	// the connections of meta, which are there already. They share credentials and
	// tokens.
	meta, small, blob *auth.Client

	referring sync.Mutex // held while a list of referrers changes
	lists     answer     // whether the registry keeps those lists; guarded by referring

	mu       sync.Mutex
	sessions map[digest.Digest]session // uploads that a mount has opened
}

var _ layout.Store = (*Repository)(nil)

// Repository returns a repository of a registry, which are named as in a
// [Reference]. Nothing is sent yet. An error wraps [ErrReference].
func (c *Client) Repository(registry, repository string) (*Repository, error) {
	if err := CheckName(registry, repository); err != nil {
		return nil, err
	}
	r := &Repository{
		client:   c,
		host:     c.endpoint(apiHost(registry)),
		name:     orasregistry.Reference{Registry: registry, Repository: repository},
		sessions: make(map[digest.Digest]session),
	}
	r.meta, r.small, r.blob = c.authClients(r.host, repository)
	return r, nil
}

// authClients makes the clients for one repository. Tokens are per
// repository anyway, and so may credentials be.
func (c *Client) authClients(host *endpoint, repository string) (meta, small, blob *auth.Client) {
	cache := auth.NewCache()
	guarded := func(rt http.RoundTripper) http.RoundTripper {
		return &tokenGuard{registry: rt, elsewhere: c.tokens, host: host}
	}
	make1 := func(rt http.RoundTripper) *auth.Client {
		client := &auth.Client{
			Client:   &http.Client{Transport: rt, CheckRedirect: checkRedirect},
			Cache:    cache,
			ClientID: "carton-oci",
			Credential: func(ctx context.Context, hostport string) (auth.Credential, error) {
				if c.opts.Credential == nil || hostport != host.host {
					return auth.EmptyCredential, nil
				}
				return c.opts.Credential(withRepository(ctx, repository), hostport)
			},
		}
		client.SetUserAgent(c.opts.UserAgent)
		return client
	}
	meta = make1(&retrier{next: guarded(c.meta), policy: c.opts.Policy, host: host})
	if c.opts.HTTPClient != nil {
		meta.Client.Timeout = c.opts.HTTPClient.Timeout
	}
	return meta, make1(guarded(c.meta)), make1(guarded(c.blob))
}

// Name returns "host/repository".
func (r *Repository) Name() string { return r.name.Registry + "/" + r.name.Repository }

// BlobURL implements layout.Store: https, or http where the registry is known to be
// reached so.
func (r *Repository) BlobURL(dgst digest.Digest) string {
	return cmp.Or(r.host.known(), "https") + "://" + r.host.host + "/v2/" + r.name.Repository + "/blobs/" +
		dgst.String()
}

// url returns the URL of something in the repository. It finds out the scheme.
func (r *Repository) url(ctx context.Context, path string) (*url.URL, error) {
	scheme, err := r.client.reach(ctx, r.host)
	if err != nil {
		return nil, err
	}
	return r.urlWith(scheme, path)
}

// urlWith returns a URL with a scheme, which for ask may be "": the one that the
// registry speaks, found out by the question itself.
func (r *Repository) urlWith(scheme, path string) (*url.URL, error) {
	u, err := url.Parse("//" + r.host.host + "/v2/" + r.name.Repository + "/" + path)
	if err == nil {
		u.Scheme = scheme
	}
	return u, err
}

// pull, push and remove say what a request wants to be allowed.
// https://distribution.github.io/distribution/spec/auth/scope/
func (r *Repository) pull(ctx context.Context) context.Context {
	return auth.AppendRepositoryScope(ctx, r.name, auth.ActionPull)
}

func (r *Repository) push(ctx context.Context) context.Context {
	return auth.AppendRepositoryScope(ctx, r.name, auth.ActionPull, auth.ActionPush)
}

func (r *Repository) remove(ctx context.Context) context.Context {
	return auth.AppendRepositoryScope(ctx, r.name, auth.ActionPull, auth.ActionDelete)
}

// read asks a question with the right to pull. A registry that refuses is asked
// again with the right to push as well, where there are credentials: some hide a
// repository that does not exist yet from who does not want to write to it.
func read[T any](ctx context.Context, r *Repository, question func(context.Context) (T, error)) (T, error) {
	if r.writes.Load() {
		return question(r.push(ctx))
	}
	v, err := question(r.pull(ctx))
	if !isDenied(err) || r.client.opts.Credential == nil {
		return v, err
	}
	again, err2 := question(r.push(ctx))
	if err2 != nil && !errors.Is(err2, layout.ErrNotFound) {
		return v, err
	}
	r.writes.Store(true)
	return again, err2
}

func isDenied(err error) bool {
	return errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrDenied)
}

// ask sends a request without a body through the metadata client. Where its URL has
// no scheme, and none is known, the first answer tells it.
func (r *Repository) ask(ctx context.Context, method string, u *url.URL, header http.Header) (*http.Response, error) {
	if u.Scheme != "" {
		return r.send(ctx, method, u, header)
	}
	own := *u
	var first *http.Response
	var answered error
	scheme, err := r.host.find(ctx, func(scheme string) (err error) {
		own.Scheme = scheme
		first, err = r.send(withFirst(ctx), method, &own, header)
		if err != nil && r.host.reached.Load() { // it speaks the scheme, and something else is wrong
			answered, err = err, nil
		}
		return err
	})
	if first != nil || answered != nil || err != nil {
		return first, cmp.Or(answered, err)
	}
	own.Scheme = scheme
	return r.send(ctx, method, &own, header)
}

// firstKey is the key of a context whose request finds out a scheme: no answer to it
// is one, too, and it is not sent again.
type firstKey struct{}

func withFirst(ctx context.Context) context.Context { return context.WithValue(ctx, firstKey{}, true) }

func (r *Repository) send(ctx context.Context, method string, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := r.meta.Do(req)
	if err != nil {
		return nil, r.host.requestError(err)
	}
	return resp, nil
}
