package cartonoci

import (
	"context"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/opencontainers/go-digest"
)

// links returns what follows links: into the place in hand where that has the
// content, whatever the URL; into other repositories of the same registry where
// the URL names a blob there, with the registry's own credentials; and anywhere
// else as pkg/carton's rules for LINKS say. hand may be nil.
func (c *client) links(hand *site) (carton.Fetcher, error) {
	reg, err := c.registry()
	if err != nil {
		return nil, err
	}
	anywhere := carton.NewLinkFetcher(carton.LinkOptions{
		Stall:      c.opts.Registry.Policy.Stall,
		AllowHosts: c.opts.AllowLinkHosts, RootCAs: reg.RootCAs(),
		Wrap: c.opts.Registry.Wrap, UserAgent: c.opts.Registry.UserAgent,
	})
	next := carton.Fetcher(&countedLinks{anywhere, c})
	if hand == nil {
		return next, nil
	}
	if hand.repo != nil {
		next = &siblings{client: c, hand: hand, next: next, repos: map[string]carton.Fetcher{}}
	}
	return convert.StoreFetcher(hand.store, next), nil
}

// siblings follows links to blobs of the registry in hand.
type siblings struct {
	client *client
	hand   *site
	next   carton.Fetcher

	mu    sync.Mutex
	repos map[string]carton.Fetcher // by repository
}

// Size implements carton.Fetcher.
func (s *siblings) Size(ctx context.Context, link carton.Link) (int64, error) {
	return s.of(link).Size(ctx, link)
}

// Open implements carton.Fetcher.
func (s *siblings) Open(ctx context.Context, link carton.Link, off, n int64) (io.ReadCloser, error) {
	return s.of(link).Open(ctx, link, off, n)
}

// of returns what follows a link.
func (s *siblings) of(link carton.Link) carton.Fetcher {
	name, ok := s.repository(link)
	if !ok {
		return s.next
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.repos[name]; ok {
		return f
	}
	f := s.next
	if reg, err := s.client.registry(); err == nil {
		if repo, err := reg.Repository(s.hand.loc.Registry, name); err == nil {
			f = convert.StoreFetcher(repo, s.next)
		}
	}
	s.repos[name] = f
	return f
}

// repository returns the repository that a link names a blob of, if it is one
// of the registry in hand.
func (s *siblings) repository(link carton.Link) (string, bool) {
	d := digest.NewDigestFromEncoded(digest.SHA256, link.Hash)
	own, err := url.Parse(s.hand.repo.BlobURL(d))
	if err != nil {
		return "", false
	}
	u, err := url.Parse(link.URL)
	if err != nil || u.Scheme != own.Scheme || u.Host != own.Host || u.User != nil || u.RawQuery != "" {
		return "", false
	}
	name, ok := strings.CutPrefix(u.Path, "/v2/")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, "/blobs/"+d.String())
}

// countedLinks counts what arrives over links.
type countedLinks struct {
	carton.Fetcher
	client *client
}

func (f *countedLinks) Open(ctx context.Context, link carton.Link, off, n int64) (io.ReadCloser, error) {
	r, err := f.Fetcher.Open(ctx, link, off, n)
	if err != nil {
		return nil, err
	}
	return &counted{r, &f.client.received}, nil
}
