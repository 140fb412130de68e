package registry

import (
	"cmp"
	"crypto/x509"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
)

// commitFactor times the stall timeout is how long a registry may take to
// finish an upload: some read the whole blob again.
const commitFactor = 30

// Client reaches registries. It keeps connections, and what it has learnt of
// each host. It may be used by many goroutines at once.
type Client struct {
	opts       Options
	meta, blob http.RoundTripper // for metadata and blobs
	tokens     http.RoundTripper // for token servers that are not the registry
	peers      peers

	now   func() time.Time // the clock; tests have others
	sweep sync.Once        // of what nobody went on with

	mu    sync.Mutex
	hosts map[string]*endpoint
}

// NewClient makes a client. It fails where a file of certificates that opts
// names can't be read, or what the environment says of proxies.
func NewClient(opts Options) (*Client, error) {
	opts.UserAgent = cmp.Or(opts.UserAgent, "carton-oci")
	c := &Client{opts: opts, now: time.Now, hosts: make(map[string]*endpoint)}
	if err := c.makeTransports(); err != nil {
		return nil, err
	}
	return c, nil
}

// Close closes the connections that nobody uses.
func (c *Client) Close() {
	for _, rt := range []http.RoundTripper{c.meta, c.blob, c.tokens} {
		closeIdle(rt)
	}
}

// WebClient returns a client for addresses that are no registry's: with the same
// certificates and proxy as for blobs, and without credentials. It follows
// redirects as far as a registry's are followed, never from https to http.
func (c *Client) WebClient() *http.Client {
	return &http.Client{Transport: c.blob, CheckRedirect: checkRedirect}
}

// RootCAs returns the authorities that [Options] CAFile adds to the system's, nil
// for the system's alone.
func (c *Client) RootCAs() *x509.CertPool {
	if c.opts.CAFile == "" {
		return nil
	}
	conf, err := c.opts.tlsConfig()
	if err != nil {
		return nil // NewClient has read the same file
	}
	return conf.RootCAs
}

// endpoint is one host and what is known of it.
type endpoint struct {
	host      string      // of the API, with the port where there is one
	behaviour behaviour   // known beforehand
	learnt    learnt      // from its answers
	meter     meter       // of what is sent to it
	reached   atomic.Bool // it has answered something

	asking sync.Mutex // held by who finds out the scheme
	mu     sync.Mutex
	scheme string // "" until it is known
}

func (c *Client) endpoint(host string) *endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.hosts[host]
	if e == nil {
		e = &endpoint{host: host, behaviour: behaviourOf(host)}
		switch {
		case c.opts.PlainHTTP:
			e.scheme = "http"
		case !httprange.IsLoopback(host):
			e.scheme = "https"
		}
		c.hosts[host] = e
	}
	return e
}
