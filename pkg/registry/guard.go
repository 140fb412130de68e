package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unicode"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/secret"
)

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
		if req.URL.Scheme == "http" && !g.client.opts.PlainHTTP && isLoopback(req.URL.Host) {
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
	return g.client.peers.isLocal(u) || g.client.opts.HTTPClient != nil && isLoopback(u.Host)
}

// tokenGuard tells what a registry is asked from what its token server is. One
// that is not on the registry's own host gets the user's password because the
// registry says so, and is held to what links are: TLS, and a public address,
// judged on the address that is connected to. oras-go judges the name alone.
type tokenGuard struct {
	registry  http.RoundTripper
	elsewhere http.RoundTripper
	host      *endpoint
}

// RoundTrip implements http.RoundTripper.
func (g *tokenGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.ContainsFunc(req.Header.Get("Authorization"), unicode.IsControl) {
		return nil, unsafe("%s gave a token that no header can hold", g.host.host)
	}
	first := firstOf(req)
	if first.URL.Host == g.host.host && strings.HasPrefix(first.URL.Path, "/v2/") {
		return g.registry.RoundTrip(req)
	}
	resp, err := g.ask(req)
	if err == nil {
		resp.Body = &tokenBody{ReadCloser: resp.Body}
	}
	return resp, err
}

func (g *tokenGuard) ask(req *http.Request) (*http.Response, error) {
	own := url.URL{Host: g.host.host}
	if strings.EqualFold(req.URL.Hostname(), own.Hostname()) {
		return g.registry.RoundTrip(req)
	}
	name := errtext.OneLine(req.URL.Host)
	if req.URL.Scheme != "https" {
		return nil, unsafe("%s names the token server %s without TLS", g.host.host, name)
	}
	err := httprange.CheckHost(req.URL, httprange.CheckAddr)
	if err == nil {
		next := g.elsewhere
		if proxied(req) {
			next = g.registry // the proxy connects
		}
		var resp *http.Response
		if resp, err = next.RoundTrip(req); err == nil {
			return resp, nil
		}
	}
	return nil, fmt.Errorf("token server %s: %w", name, err)
}

// proxied reports whether a proxy connects to the request's host, so that nobody
// here sees the address.
func proxied(req *http.Request) bool {
	proxy, err := proxyFor(req)
	return err == nil && proxy != nil
}

// firstOf returns the request that a chain of redirects began with.
func firstOf(req *http.Request) *http.Request {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req
}

func closeIdle(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// tokenBody makes the tokens known that pass through it.
type tokenBody struct {
	io.ReadCloser
	read []byte
}

// maxTokens is how much of a token server's answer is looked at, in bytes: as much
// as oras-go reads.
const maxTokens = 128 << 10

func (b *tokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read = append(b.read, p[:min(n, maxTokens-len(b.read))]...)
	return n, err
}

func (b *tokenBody) Close() error {
	secret.AddToken(b.read)
	return b.ReadCloser.Close()
}
