package registry

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/internal/stall"
)

// makeTransports makes the transport for metadata and the one for blobs. Blobs
// get a connection each: streams of one HTTP/2 connection share its window, and on
// a line with 50 ms of latency that costs three quarters of the speed. Each has a
// second one for hosts that a redirect names, and token servers have their own:
// what was connected to under one rule is never used under another.
func (c *Client) makeTransports() error {
	o := &c.opts
	if o.HTTPClient != nil {
		rt := o.HTTPClient.Transport
		if rt == nil {
			rt = http.DefaultTransport
		}
		meta, blob := c.wrapped(rt, 0), c.wrapped(rt, commitFactor)
		c.meta = &redirectGuard{client: c, named: meta, others: meta}
		c.blob = &redirectGuard{client: c, named: blob, others: blob}
		c.tokens = meta
		return nil
	}
	if err := checkProxies(); err != nil {
		return err
	}
	conf, err := o.tlsConfig()
	if err != nil {
		return err
	}
	others := httprange.NewDialer(httprange.ControlNotLocal).DialContext
	c.meta = &redirectGuard{client: c, named: c.metaTransport(conf, c.dial), others: c.metaTransport(conf, others)}
	c.blob = &redirectGuard{client: c, named: c.blobTransport(conf, c.dial), others: c.blobTransport(conf, others)}
	c.tokens = c.metaTransport(conf, httprange.NewDialer(httprange.Control).DialContext)
	return nil
}

// wrapped puts around a transport what options ask for, what ends exchanges that
// stall, and what remembers the secrets that are sent. commit times the stall
// timeout is how long the end of an upload may take.
func (c *Client) wrapped(rt http.RoundTripper, commit time.Duration) http.RoundTripper {
	if c.opts.Wrap != nil {
		rt = c.opts.Wrap(rt)
	}
	limit := c.opts.stall()
	return secret.Watch(&stall.Transport{Next: rt, Limit: limit, Commit: commit * limit})
}

func (c *Client) metaTransport(conf *tls.Config, dial httprange.DialFunc) http.RoundTripper {
	t := newTransport(conf, dial)
	t.ForceAttemptHTTP2 = true
	// a dead connection is noticed, and left
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout}
	return c.wrapped(t, 0)
}

func (c *Client) blobTransport(conf *tls.Config, dial httprange.DialFunc) http.RoundTripper {
	t := newTransport(conf, dial)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ReadBufferSize, t.WriteBufferSize = readBuffer, writeBuffer
	return c.wrapped(t, commitFactor)
}

func newTransport(conf *tls.Config, dial httprange.DialFunc) *http.Transport {
	t := httprange.NewTransport(conf.Clone(), proxyFor, dial)
	t.OnProxyConnectResponse = proxyAnswer
	return t
}

// dial connects to a host that the user named, wherever that is. But for requests
// without TLS that nobody asked for ([plainHere]) it has to be this machine.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var control httprange.ControlFunc
	if ctx.Value(plainHere{}) != nil {
		control = controlLoopback
	}
	conn, err := httprange.NewDialer(control).DialContext(ctx, network, address)
	if err == nil {
		c.peers.add(address, conn.RemoteAddr())
	}
	return conn, err
}

// plainHere is the key of a context whose request goes without TLS because of a
// name: "localhost" and what ends in ".localhost" is this machine by convention
// only, and DNS may say otherwise.
// https://datatracker.ietf.org/doc/html/rfc6761#section-6.3
type plainHere struct{}

func controlLoopback(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !ap.Addr().Unmap().IsLoopback() {
		return unsafe("the name of a host on this machine leads to %s, and without TLS no secret goes there", address)
	}
	return nil
}

// peers remembers which hosts, by HOST:PORT, are at an address that only this
// machine reaches so.
type peers struct {
	mu    sync.Mutex
	local map[string]bool
}

func (p *peers) add(address string, peer net.Addr) {
	ap, err := netip.ParseAddrPort(peer.String())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.local == nil {
		p.local = map[string]bool{}
	}
	p.local[address] = err == nil && httprange.CheckNotLocal(ap.Addr()) != nil
}

// isLocal reports whether u's host was last found at such an address.
func (p *peers) isLocal(u *url.URL) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.local[net.JoinHostPort(strings.ToLower(u.Hostname()), port(u))]
}

func closeIdle(rt http.RoundTripper) { (&http.Client{Transport: rt}).CloseIdleConnections() }
