package httprange

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

const (
	dialTimeout    = 30 * time.Second
	tlsTimeout     = 15 * time.Second
	idleTimeout    = 90 * time.Second
	idlePerHost    = 64        // connections kept; more parallel transfers than anybody asks for
	maxHeaderBytes = 256 << 10 // of an answer, 1xx included
)

type (
	// DialFunc connects to an address.
	DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)
	// ProxyFunc says which proxy a request goes through, nil for none.
	ProxyFunc = func(*http.Request) (*url.URL, error)
	// ControlFunc is asked before an address is connected to.
	ControlFunc = func(network, address string, conn syscall.RawConn) error
)

// NewTransport makes a transport with the limits that hold for every host. What it
// is given is the bytes of the content, never decoded.
func NewTransport(conf *tls.Config, proxy ProxyFunc, dial DialFunc) *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dial,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    tlsTimeout,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}
}

// NewDialer makes what connects to the addresses that control allows: it sees the
// address after name resolution, whatever the name was a moment ago.
func NewDialer(control ControlFunc) *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout, Control: control}
}
