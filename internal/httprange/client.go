package httprange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/internal/stall"
)

// MaxRedirects is the most redirects that a client of this package follows.
const MaxRedirects = 5

// ClientOptions say what a client for a stranger's URLs may reach.
type ClientOptions struct {
	// Allow names hosts, as HOST or HOST:PORT, that may be reached by plain http
	// and at any address. They are compared with what the URL says, not with what
	// a name resolves to.
	Allow []string
	// RootCAs verifies servers' certificates; nil is the system's.
	RootCAs *x509.CertPool
	// Stall is how long a host may send nothing, as package stall counts it; 0 is
	// its default.
	Stall time.Duration
	// Wrap, where it is set, is put around the transport: to log, to count.
	Wrap func(http.RoundTripper) http.RoundTripper

	// For tests.
	resolver *net.Resolver
	proxy    ProxyFunc
}

// Client reaches what URLs written by strangers may reach: https on public
// addresses, and the hosts that are allowed by name. It sends no credentials, no
// cookies and no Referer, follows at most [MaxRedirects] redirects under the
// same rules, and uses the environment's proxy only where the proxy's host is
// allowed.
type Client struct {
	allow []allowed
	http  *http.Client
}

// allowed is an entry of the allow-list; port "" is any.
type allowed struct{ host, port string }

// NewClient makes a client. A malformed entry of Allow is an error.
func NewClient(o ClientOptions) (*Client, error) {
	c := &Client{}
	for _, s := range o.Allow {
		a, err := parseAllowed(s)
		if err != nil {
			return nil, err
		}
		c.allow = append(c.allow, a)
	}
	proxy := o.proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	transport := NewTransport(&tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}, c.onlyAllowed(proxy),
		c.dial(o.resolver))
	// One HTTP/1.1 connection a request: several times the throughput of a
	// multiplexed one over a long distance.
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	c.http = &http.Client{CheckRedirect: c.checkRedirect, Transport: transport}
	if o.Wrap != nil {
		c.http.Transport = o.Wrap(c.http.Transport)
	}
	c.http.Transport = secret.Watch(&stall.Transport{Next: c.http.Transport, Limit: o.Stall})
	return c, nil
}

// Do sends a request whose URL checkURL allows.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if err := c.checkURL(req.URL); err != nil {
		return nil, err
	}
	return c.http.Do(req)
}

// CloseIdleConnections closes connections that are not in use.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// checkURL returns an error wrapping ErrNotAllowed for a URL that is never
// followed, without asking for it: other schemes than https (http where the host
// is allowed), user info, and hosts that are literal addresses which are not
// public, in whatever notation. What a name resolves to is checked on connecting.
func (c *Client) checkURL(u *url.URL) error {
	host, port := hostPort(u)
	ok := c.allows(host, port)
	switch {
	case u.Scheme != "https" && u.Scheme != "http", u.Opaque != "":
		return fmt.Errorf("%w: scheme %s, want https", ErrNotAllowed, errtext.OneLine(u.Scheme))
	case host == "":
		return fmt.Errorf("%w: the URL names no host", ErrNotAllowed)
	case u.User != nil:
		return fmt.Errorf("%w: the URL holds credentials, which are never sent", ErrNotAllowed)
	case ok:
		return nil
	case u.Scheme == "http":
		return &NotAllowedError{u.Host, fmt.Errorf("%w: plain http to %s, want https", ErrNotAllowed,
			errtext.OneLine(u.Host))}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if err := CheckAddr(a); err != nil {
			return &NotAllowedError{u.Host, err}
		}
		return nil
	}
	if endsInNumber(host) {
		return fmt.Errorf("%w: %s is neither a name nor an address in its usual form", ErrNotAllowed,
			errtext.OneLine(host))
	}
	return nil
}

// checkRedirect is asked before each redirect is followed.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	if len(via) > MaxRedirects {
		return fmt.Errorf("%w: more than %d redirects", ErrNotAllowed, MaxRedirects)
	}
	if err := c.checkURL(req.URL); err != nil {
		return fmt.Errorf("redirect: %w", err)
	}
	return nil
}

func (c *Client) allows(host, port string) bool {
	for _, a := range c.allow {
		if a.host == host && (a.port == "" || a.port == port) {
			return true
		}
	}
	return false
}

// dial connects to hosts that are allowed by name at any address, to all others
// at public ones.
func (c *Client) dial(resolver *net.Resolver) DialFunc {
	open, guarded := NewDialer(nil), NewDialer(Control)
	open.Resolver, guarded.Resolver = resolver, resolver
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err == nil && c.allows(strings.ToLower(host), port) {
			return open.DialContext(ctx, network, address)
		}
		conn, err := guarded.DialContext(ctx, network, address)
		if errors.Is(err, ErrNotAllowed) {
			return nil, &NotAllowedError{strings.TrimSuffix(address, ":443"), err}
		}
		return conn, err
	}
}

// onlyAllowed drops a proxy whose host is not allowed: through it the address
// that is connected to could not be checked.
func (c *Client) onlyAllowed(proxy ProxyFunc) ProxyFunc {
	return func(req *http.Request) (*url.URL, error) {
		u, err := proxy(req)
		if err != nil || u == nil {
			return nil, err
		}
		if !c.allows(hostPort(u)) {
			return nil, nil
		}
		return u, nil
	}
}

// hostPort returns the host in lower case and the port that u leads to.
func hostPort(u *url.URL) (host, port string) {
	host, port = strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return host, port
}

// CheckAllow returns an error unless s is a HOST or HOST:PORT for
// [ClientOptions] Allow.
func CheckAllow(s string) error {
	_, err := parseAllowed(s)
	return err
}

// hostRE is a host that somebody may be told to allow: a name or an address in
// its usual form, and in letters that everybody reads as what they are.
var hostRE = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)

// Allowable reports whether s, which a stranger wrote, is plainly a HOST or
// HOST:PORT, fit to be shown as something to allow.
func Allowable(s string) bool { return hostRE.MatchString(s) && CheckAllow(s) == nil }

var errAllow = errors.New("want HOST or HOST:PORT")

func parseAllowed(s string) (allowed, error) {
	literal := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		literal = s[1 : len(s)-1]
	}
	if a, err := netip.ParseAddr(literal); err == nil {
		return allowed{host: a.String()}, nil
	}
	u, err := url.Parse("//" + s)
	if err != nil || u.Host != s || u.Hostname() == "" || strings.HasSuffix(s, ":") {
		return allowed{}, fmt.Errorf("allowed host %s: %w", errtext.OneLine(s), errAllow)
	}
	return allowed{host: strings.ToLower(u.Hostname()), port: u.Port()}, nil
}

// endsInNumber reports whether a host's last label is a number, as in 127.1,
// 0x7f000001 and 2130706433, which some resolvers take for addresses
// (https://url.spec.whatwg.org/#ends-in-a-number-checker).
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
