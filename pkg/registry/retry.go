package registry

import (
	"context"
	"fmt"
	"net/http"
)

// retrier repeats requests that failed in a way that may pass, and whose body
// can be had again. Metadata goes through it; blobs have attempts of their own.
type retrier struct {
	next   http.RoundTripper
	policy Policy
	host   *endpoint
}

// RoundTrip sends req, as often as the policy says of the work that it belongs to.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	tries := triesOf(ctx)
	for {
		resp, err := r.next.RoundTrip(req)
		var header http.Header
		if err == nil {
			if req.URL.Host == r.host.host {
				r.host.reached.Store(true)
			}
			if !r.policy.Retryable(resp.StatusCode) {
				return resp, nil
			}
			header = resp.Header
		} else if ctx.Err() != nil || !r.host.transient(err) || ctx.Value(firstKey{}) != nil && !r.host.reached.Load() {
			return nil, err
		}
		tries.failures++
		delay, giveUp := r.policy.Next(tries.failures, header, err)
		if giveUp != nil || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return resp, err // the answer itself says more
		}
		if resp != nil {
			_ = resp.Body.Close()
			err = fmt.Errorf("%s answers %s", req.URL.Host, resp.Status)
		}
		if err := r.policy.Pause(ctx, tries.failures, delay, err); err != nil {
			return nil, err
		}
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
}

// again returns req with its body from the beginning.
func again(req *http.Request) (*http.Request, error) {
	clone := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		clone.Body = body
	}
	return clone, nil
}

// tries counts the failures in a row of one piece of work: of an upload with every
// question that it asks on its way, of a manifest with the answers that broke off.
// Loops within loops count in one, or eight attempts of eight would be sixty-four.
type tries struct{ failures int }

type triesKey struct{}

// withTries makes the requests under the context count in t.
func withTries(ctx context.Context, t *tries) context.Context {
	return context.WithValue(ctx, triesKey{}, t)
}

// triesOf returns the count of the work that a request belongs to, one of its own
// where it belongs to none.
func triesOf(ctx context.Context) *tries {
	if t, ok := ctx.Value(triesKey{}).(*tries); ok {
		return t
	}
	return &tries{}
}

// oneWork makes the requests under the context one piece of work, if they are not
// part of one already.
func oneWork(ctx context.Context) context.Context {
	return withTries(ctx, triesOf(ctx))
}

// spent counts a failure, and reports whether it was the last.
func (t *tries) spent(p Policy) bool {
	t.failures++
	return p.Exhausted(t.failures)
}
