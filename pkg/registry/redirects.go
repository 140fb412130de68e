package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
)

// checkRedirect follows at most ten redirects of requests without a body, never
// from https to http. Authorization is taken off by oras-go's client as soon as
// a redirect leaves the origin; net/http alone would keep it for another port
// and for subdomains. Where a redirect came from is nobody's business: the
// address may be presigned.
func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	first := via[0]
	switch {
	case len(via) >= maxRedirects:
		return unsafe("more than %d redirects", maxRedirects)
	case req.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https":
		return unsafe("redirect from https to %s", req.URL.Scheme)
	case req.URL.Scheme != "https" && req.URL.Scheme != "http":
		return unsafe("redirect to %q", req.URL.Scheme)
	case req.URL.Hostname() == "":
		return unsafe("redirect to no host")
	case req.Method != first.Method:
		return unsafe("redirect that makes %s of %s", req.Method, first.Method)
	case first.Method != http.MethodGet && first.Method != http.MethodHead && !sameHost(req.URL, first.URL):
		return unsafe("redirect of %s to another host, %s", first.Method, req.URL.Host)
	}
	return nil
}

const maxRedirects = 10

// sameHost reports whether two URLs have one host and port, default ports
// included, whatever their schemes.
func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}

// redirectGuard tells hosts that the user named from those that an answer names.
// A redirect may lead into a private network, where registries keep their
// storage; but to this machine, to its neighbours by link-local addresses, and to
// the metadata service of a cloud only one that is there itself.
type redirectGuard struct {
	client        *Client
	named, others http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *redirectGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	first := firstOf(req)
	if sameHost(req.URL, first.URL) && req.URL.Scheme == first.URL.Scheme || g.here(first.URL) {
		if req.URL.Scheme == "http" && !g.client.opts.PlainHTTP && httprange.IsLoopback(req.URL.Host) {
			req = req.WithContext(context.WithValue(req.Context(), plainHere{}, true))
		}
		return g.named.RoundTrip(req)
	}
	if err := httprange.CheckHost(req.URL, httprange.CheckNotLocal); err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	if proxied(req) {
		return g.named.RoundTrip(req) // the proxy connects
	}
	resp, err := g.others.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("redirect to %s: %w", errtext.OneLine(req.URL.Host), err)
	}
	return resp, nil
}

// CloseIdleConnections closes those of both transports.
func (g *redirectGuard) CloseIdleConnections() {
	closeIdle(g.named)
	closeIdle(g.others)
}

// here reports whether a host is at an address that only this machine reaches so.
func (g *redirectGuard) here(u *url.URL) bool {
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return httprange.CheckNotLocal(addr) != nil
	}
	return g.client.peers.isLocal(u) || g.client.opts.HTTPClient != nil && httprange.IsLoopback(u.Host)
}

// firstOf returns the request that a chain of redirects began with.
func firstOf(req *http.Request) *http.Request {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req
}
