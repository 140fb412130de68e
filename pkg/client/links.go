package client

import (
	"context"
	"io"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
)

// links returns what follows links: into the preferred place where that has the
// content, whatever the URL; into repositories that the user allows, with the
// user's credentials; and anywhere else as pkg/carton's rules for LINKS say, without
// any. Who wrote LINKS must not make a user read or mount what only that user may.
// preferred may be nil.
func (c *call) links(ctx context.Context, preferred *site) (links.Fetcher, error) {
	reg, err := c.registries()
	if err != nil {
		return nil, err
	}
	anywhere := links.NewFetcher(links.Options{
		Attempts: c.opts.Registry.Policy.Attempts, Stall: c.opts.Registry.Policy.Stall,
		Retrying:   c.opts.Registry.Policy.Retrying,
		AllowHosts: c.opts.AllowLinkHosts, RootCAs: reg.RootCAs(),
		Wrap: c.opts.Registry.Wrap, UserAgent: c.opts.Registry.UserAgent,
	})
	next := &linkRepos{next: &countedLinks{anywhere, c}, repos: map[layout.Origin]links.Fetcher{}}
	for _, o := range c.linkRepos {
		repo, err := c.repository(ctx, o)
		if err != nil {
			return nil, err
		}
		next.repos[o] = convert.StoreFetcher(repo, next.next)
	}
	if preferred == nil {
		return next, nil
	}
	return convert.StoreFetcher(preferred.store, next), nil
}

// linkRepos follows links to blobs of repositories that are allowed, and says of
// others that are refused how to allow them.
type linkRepos struct {
	next  links.Fetcher
	repos map[layout.Origin]links.Fetcher
}

// Size implements links.Fetcher.
func (l *linkRepos) Size(ctx context.Context, link links.Link) (int64, error) {
	f, o := l.of(link)
	size, err := f.Size(ctx, link)
	return size, l.advise(err, f, o)
}

// Open implements links.Fetcher.
func (l *linkRepos) Open(ctx context.Context, link links.Link, off, n int64) (io.ReadCloser, error) {
	f, o := l.of(link)
	r, err := f.Open(ctx, link, off, n)
	return r, l.advise(err, f, o)
}

// of returns what follows a link, and the repository that it names, if any.
func (l *linkRepos) of(link links.Link) (links.Fetcher, layout.Origin) {
	o, _ := convert.LinkOrigin(link.URL, digest.NewDigestFromEncoded(digest.SHA256, link.Hash))
	if f, ok := l.repos[o]; ok {
		return f, o
	}
	return l.next, o
}

func (l *linkRepos) advise(err error, asked links.Fetcher, o layout.Origin) error {
	if err == nil || asked != l.next || registry.CheckName(o.Registry, o.Repository) != nil {
		return err
	}
	return hint.With(err, "if you may read that repository, and mean to: %s %s", hint.AllowLinkRepos,
		o.Registry+"/"+o.Repository)
}

// countedLinks counts what arrives over links.
type countedLinks struct {
	links.Fetcher
	call *call
}

func (f *countedLinks) Open(ctx context.Context, link links.Link, off, n int64) (io.ReadCloser, error) {
	r, err := f.Fetcher.Open(ctx, link, off, n)
	if err != nil {
		return nil, err
	}
	return counted(r, &f.call.received), nil
}
