package registry

import (
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
		} else if reached := r.host.reached.Load(); !transient(ctx, err, reached) || ctx.Value(firstKey{}) != nil && !reached {
			return nil, err
		}
		if tries.spent(r.policy) || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return resp, err
		}
		delay, derr := r.policy.Delay(tries.failures, header)
		if derr != nil {
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
