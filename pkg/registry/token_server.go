package registry

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/secret"
)

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
