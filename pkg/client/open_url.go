package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// ErrNoRanges: a web server gives no part of a carton, but all of it.
var ErrNoRanges = ranges.ErrNone

// openURL opens a carton on a web server. Whoever names it means the host, so
// it may be a private one, and the environment's proxy is used; redirects must
// stay with https. Every request ends with ctx.
func (c *call) openURL(ctx context.Context, address string) (carton.Source, error) {
	g, err := c.web()
	if err != nil {
		return nil, err
	}
	r, err := httprange.NewReaderAt(ctx, g, getURL(address))
	if errors.Is(err, ErrNoRanges) {
		return nil, hint.With(err, "download it, and use the file")
	}
	if err != nil {
		return nil, webError(err)
	}
	z, err := carton.NewLazyReader(r, r.Size())
	if err != nil {
		r.Close()
		return nil, err
	}
	return &webCarton{z, r}, nil
}

// web returns what reads web servers, without credentials.
func (c *call) web() (*httprange.Getter, error) {
	reg, err := c.registries()
	if err != nil {
		return nil, err
	}
	web := reg.WebClient()
	do := func(req *http.Request) (*http.Response, error) {
		req.Header.Set("User-Agent", cmp.Or(c.opts.Registry.UserAgent, "carton-oci"))
		resp, err := web.Do(req)
		if err == nil {
			resp.Body = counted(resp.Body, &c.received)
		}
		return resp, err
	}
	return &httprange.Getter{Do: do, Policy: c.opts.Registry.Policy, Answered: new(atomic.Bool)}, nil
}

// getURL asks for a URL.
func getURL(address string) httprange.NewRequest {
	return func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", secret.Redact(address), errors.Unwrap(err))
		}
		return req, nil
	}
}

// webError gives a server's answer the kind that it stands for. Its text need
// not name the URL, which the caller knows.
func webError(err error) error {
	var whole *httprange.Error
	if errors.As(err, &whole) {
		err = whole.Err
	}
	var status *httprange.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch status.Code {
	case http.StatusNotFound, http.StatusGone:
		return errtext.WithKind(err, fs.ErrNotExist)
	case http.StatusUnauthorized, http.StatusForbidden:
		return errtext.WithKind(err, fs.ErrPermission)
	}
	return err
}

// webCarton ends its requests when it is closed.
type webCarton struct {
	*carton.Reader
	r io.Closer
}

func (w *webCarton) Close() error { return errors.Join(w.Reader.Close(), w.r.Close()) }
