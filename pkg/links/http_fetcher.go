package links

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Retry is a wait for another attempt, which Options.Retrying is told of.
type Retry = httprange.Retry

// Options say how links are followed. The zero value is the rules of LINKS
// as [NewFetcher] states them.
type Options struct {
	// AllowHosts names hosts, as HOST or HOST:PORT, that links may reach by plain
	// http and at any address, private ones included. They are compared with what
	// the URL says.
	AllowHosts []string
	// RootCAs verifies the hosts' certificates; nil is the system's.
	RootCAs *x509.CertPool
	// Wrap, where it is set, is put around the transport: to log, to count.
	Wrap func(http.RoundTripper) http.RoundTripper
	// UserAgent is sent to the hosts; "" is "carton-oci".
	UserAgent string
	// MaxBytes is the most bytes of one content that is read from a host that does
	// not say its size, and of any content that is decoded; 0 is 1 TiB.
	MaxBytes int64
	// Attempts is how many requests in a row may fail without progress, Stall how
	// long a host may send nothing; 0 are 8 and 30 s.
	Attempts int
	// Retrying, where it is set, is told of every wait for another attempt.
	Retrying func(Retry)
	Stall    time.Duration
}

// HTTPFetcher follows links over HTTP.
type HTTPFetcher struct {
	client *httprange.Client
	getter httprange.Getter
	opts   Options
	hosts  knownHosts
	err    error // what is wrong with the options
}

// NewFetcher makes the [Fetcher] for links that strangers wrote:
//
//   - https to public addresses, checked on the address that is connected to;
//     anything else only to hosts that are allowed by name;
//   - at most 5 redirects, each under the same rule;
//   - no credentials, cookies or Referer; a URL that holds credentials is not
//     followed; a proxy is used only if its host is allowed;
//   - what a host sends in the content-encodings gzip, deflate, br and zstd (with
//     a window of at most [MaxZstdWindow]) is decoded; any other encoding, and
//     more than one, is an error;
//   - decoded content is at most [MaxExpansion] times what was sent for it, once
//     it has 64 MiB;
//   - broken connections, 408, 429 and 5xx are retried, Retry-After is honoured;
//     a host that does not answer at all is not asked again.
//
// Errors wrap [carton.ErrLink]; malformed AllowHosts make every call fail.
func NewFetcher(o Options) *HTTPFetcher {
	f := &HTTPFetcher{opts: o}
	if f.opts.UserAgent == "" {
		f.opts.UserAgent = "carton-oci"
	}
	if f.opts.MaxBytes <= 0 {
		f.opts.MaxBytes = 1 << 40
	}
	f.client, f.err = httprange.NewClient(httprange.ClientOptions{
		Allow: o.AllowHosts, RootCAs: o.RootCAs, Wrap: o.Wrap,
		Stall: o.Stall,
	})
	if f.err == nil {
		f.getter = httprange.Getter{
			Do:     f.client.Do,
			Policy: httprange.Policy{Attempts: o.Attempts, Retrying: o.Retrying},
		}
	}
	return f
}

// Size implements [Fetcher]. It asks by HEAD, then by a range of one byte.
func (f *HTTPFetcher) Size(ctx context.Context, link Link) (int64, error) {
	u, request, err := f.request(link)
	if err != nil {
		return -1, err
	}
	size := int64(-1)
	err = f.hosts.ask(ctx, u, func() (err error) {
		size, err = f.getter.Stat(ctx, request)
		return err
	})
	if err != nil {
		return -1, linkError(err)
	}
	return size, nil
}

// Open implements [Fetcher].
func (f *HTTPFetcher) Open(ctx context.Context, link Link, off, n int64) (io.ReadCloser, error) {
	u, request, err := f.request(link)
	if err != nil {
		return nil, err
	}
	var body *httprange.Body
	var encoding string
	err = f.hosts.ask(ctx, u, func() (err error) {
		body, encoding, err = f.open(ctx, request, off, n)
		return err
	})
	if err != nil {
		return nil, linkError(err)
	}
	past := off > 0 && body.Size() >= 0 && off >= body.Size()
	if off != 0 || n >= 0 {
		if encoding == "" && !past {
			return f.limited(body, body.Size()), nil
		}
		// That was a range of the encoded bytes, which can't be decoded; or it lies
		// past the end of what may be encoded bytes: a 416 does not say.
		_ = body.Close()
		if ranges.IsOnly(ctx) {
			return nil, linkError(fmt.Errorf("%w: the content is encoded", ranges.ErrNone))
		}
		if body, encoding, err = f.open(ctx, request, 0, -1); err != nil {
			return nil, err
		}
	}
	content := io.ReadCloser(body)
	if encoding != "" {
		if content, err = decodeContent(encoding, body); err != nil {
			_ = body.Close()
			return nil, err
		}
		return cut(f.limited(content, -1), off, n)
	}
	if size := body.Size(); size >= 0 && off >= size {
		return exactly(content, 0, off > size || n > 0), nil
	}
	return cut(f.limited(content, body.Size()), off, n)
}

// open asks for a range of what the host stores, and says how that is encoded.
func (f *HTTPFetcher) open(
	ctx context.Context, request httprange.NewRequest, off, n int64,
) (*httprange.Body, string, error) {
	body, err := f.getter.Open(ctx, request, off, n, -1)
	if err != nil {
		return nil, "", linkError(err)
	}
	encoding, err := contentEncoding(body.Header())
	if err != nil {
		_ = body.Close()
		return nil, "", err
	}
	return body, encoding, nil
}

// request makes the requests for a link.
func (f *HTTPFetcher) request(link Link) (*url.URL, httprange.NewRequest, error) {
	if f.err != nil {
		return nil, nil, linkError(f.err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		// The cause quotes the URL, which may hold a password.
		return nil, nil, errorf(carton.ErrLink, "", "a link is not a URL")
	}
	return u, func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("User-Agent", f.opts.UserAgent)
		return req, nil
	}, nil
}

// limited bounds content whose size nobody has said.
func (f *HTTPFetcher) limited(r io.ReadCloser, size int64) io.ReadCloser {
	if size >= 0 {
		return &boundedBody{r: r, left: -1}
	}
	return &boundedBody{r: r, left: f.opts.MaxBytes}
}

// boundedBody is a link's content: its errors wrap carton.ErrLink, and it ends after left
// bytes with carton.ErrLimit.
type boundedBody struct {
	r    io.ReadCloser
	left int64 // -1: any number
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left >= 0 {
		if int64(n) > b.left {
			return 0, errorf(carton.ErrLimit, "", "a link's content goes on after the most that is read of it")
		}
		b.left -= int64(n)
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF { //nolint:errorlint // both come bare
		err = linkError(err)
	}
	return n, err
}

func (b *boundedBody) Close() error { return b.r.Close() }

// linkError makes err a carton.ErrLink, with what helps where the host is refused.
func linkError(err error) error {
	var e *carton.Error
	if errors.As(err, &e) {
		return err
	}
	var refused *httprange.NotAllowedError
	if errors.As(err, &refused) && httprange.Allowable(refused.Host) {
		err = hint.With(err, "if you trust that host: %s %s", hint.AllowLinkHosts, refused.Host)
	}
	return &carton.Error{Kind: carton.ErrLink, Err: err}
}

// cut gives n bytes of r from off; n < 0 means to the end.
func cut(r io.ReadCloser, off, n int64) (io.ReadCloser, error) {
	switch skipped, err := io.CopyN(io.Discard, r, off); {
	case err == io.EOF && skipped < off: //nolint:errorlint // bare from io.CopyN
		return exactly(r, 0, true), nil // the range begins past the content
	case err != nil:
		_ = r.Close()
		return nil, err
	case n < 0:
		return r, nil
	}
	return exactly(r, n, false), nil
}

// exactly gives n bytes of r, and io.ErrUnexpectedEOF behind them where the range is
// short of what was asked for.
func exactly(r io.ReadCloser, n int64, short bool) io.ReadCloser {
	return iox.ReadCloser{Reader: &iox.Exactly{R: r, N: n, Short: short}, Closer: r}
}
