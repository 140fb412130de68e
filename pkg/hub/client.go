package hub

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Client asks one hub. It may be used by many goroutines at once.
type Client struct {
	endpoint      *url.URL
	authorization string // "" for none
	agent         string
	web           http.Client
	policy        httprange.Policy
	cache         string
	answered      atomic.Bool
	buffers       chan []byte // of what is read ahead; nil ones are not made yet
}

// New makes a client. Nothing is sent.
func New(o Options) (*Client, error) {
	if o.Offline {
		return nil, hint.With(errors.New("the environment forbids asking a hub: HF_HUB_OFFLINE"),
			"name the folder of the repository in the cache instead, models--ORG--NAME, or unset HF_HUB_OFFLINE")
	}
	c := &Client{
		agent: cmp.Or(o.UserAgent, "carton-oci"), policy: o.Policy, cache: o.Cache,
		buffers: make(chan []byte, Ahead/pieceBytes),
	}
	var err error
	if c.endpoint, c.authorization, err = readEndpoint(o); err != nil {
		return nil, err
	}
	if c.policy.MaxRetryAfter == 0 {
		c.policy.MaxRetryAfter = MaxWait
	}
	for range cap(c.buffers) {
		c.buffers <- nil
	}
	web := o.Web
	if web == nil {
		web = http.DefaultClient
	}
	c.web = *web
	c.web.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if !c.isEndpoint(req.URL) {
			req.Header.Del("Authorization") // net/http keeps it for other ports and subdomains
		}
		if web.CheckRedirect != nil {
			return web.CheckRedirect(req, via)
		}
		if len(via) >= 10 {
			return errors.New("more than 10 redirects")
		}
		return nil
	}
	return c, nil
}

// isEndpoint reports whether an address is the hub's own, which the token goes to.
func (c *Client) isEndpoint(u *url.URL) bool {
	return u.Scheme == c.endpoint.Scheme && strings.EqualFold(u.Host, c.endpoint.Host)
}

// url returns an address below the endpoint, of segments that are escaped.
func (c *Client) url(segments ...string) *url.URL {
	u := *c.endpoint
	for _, s := range segments {
		u.RawPath = u.EscapedPath() + "/" + url.PathEscape(s)
		u.Path += "/" + s
	}
	return &u
}

// segments splits a path into segments for url.
func segments(path string) []string { return strings.Split(path, "/") }

// newRequest makes a request to the hub.
func (c *Client) newRequest(ctx context.Context, u *url.URL) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.agent)
	if c.authorization != "" {
		req.Header.Set("Authorization", c.authorization)
	}
	return req, nil
}

// do sends a request. What a hub's limit says of the time to wait is put where
// everybody says it.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	resp, err := c.web.Do(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
		if wait, ok := limitEnds(resp.Header.Values("RateLimit")); ok {
			resp.Header.Set("Retry-After", strconv.Itoa(wait))
		}
	}
	return resp, err
}

// limitEnds reads when a limit ends, in seconds: `"api";r=0;t=55`. One more is
// waited, as the hub's own clients do.
// https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-09
func limitEnds(values []string) (seconds int, ok bool) {
	for _, item := range strings.Split(strings.Join(values, ","), ",") {
		for _, parameter := range strings.Split(item, ";")[1:] {
			text, found := strings.CutPrefix(strings.TrimSpace(parameter), "t=")
			if n, err := strconv.Atoi(text); found && err == nil && n >= 0 && n < 1<<30 {
				seconds, ok = max(seconds, n+1), true
			}
		}
	}
	return seconds, ok
}

// document reads an answer of the API of at most limit bytes.
func (c *Client) document(ctx context.Context, u *url.URL, limit int64) (body []byte, header http.Header, err error) {
	g := &httprange.Getter{Do: c.do, Policy: c.policy, Answered: &c.answered, CheckResponse: c.refusal, Pinned: true}
	b, err := g.Open(ctx, func(ctx context.Context) (*http.Request, error) { return c.newRequest(ctx, u) }, 0, -1, -1)
	if err != nil {
		return nil, nil, c.advise(err)
	}
	defer b.Close()
	body, err = io.ReadAll(io.LimitReader(b, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = listf("an answer has more than %d bytes", limit)
	}
	return body, b.Header(), err
}
