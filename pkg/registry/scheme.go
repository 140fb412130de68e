package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
)

// known returns the scheme as far as it is known, without asking; "" where it is not.
func (h *endpoint) known() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.scheme
}

// speaks remembers the scheme.
func (h *endpoint) speaks(scheme string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scheme = scheme
}

// reach returns the scheme that e speaks. Only of a loopback host that is not
// known already: it is asked with TLS, and where no TLS server answers, without.
// The question carries no credentials, and its answer is remembered.
func (c *Client) reach(ctx context.Context, e *endpoint) (string, error) {
	scheme, err := e.find(ctx, func(scheme string) error { return c.probe(ctx, scheme+"://"+e.host+"/v2/") })
	if err != nil {
		err = e.requestError(err)
	}
	return scheme, err
}

// find returns the scheme that e speaks, and finds it out by a question where it is
// not known: with TLS, and where no TLS server answers, without.
func (h *endpoint) find(ctx context.Context, question func(scheme string) error) (string, error) {
	if scheme := h.known(); scheme != "" {
		return scheme, nil
	}
	h.asking.Lock()
	defer h.asking.Unlock()
	if scheme := h.known(); scheme != "" {
		return scheme, nil
	}
	err := question("https")
	if err == nil {
		h.speaks("https")
		return "https", nil
	}
	if ctx.Err() != nil || wasTLS(err) {
		return "", err
	}
	if plain := question("http"); plain != nil {
		if ctx.Err() != nil {
			err = plain
		}
		return "", err
	}
	h.speaks("http")
	return "http", nil
}

// probe reports whether anything answers at url.
func (c *Client) probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.stall())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	resp, err := c.meta.RoundTrip(req)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBytes) // so that the connection is used again
	return resp.Body.Close()
}

// wasTLS reports whether err comes from a server that does speak TLS: its
// certificate was refused, or it refused ours.
func wasTLS(err error) bool {
	var (
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		op      *net.OpError
	)
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &op) && op.Op == "remote error"
}
