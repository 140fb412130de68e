package registry

import (
	"io"
	"net/http"
	"time"
)

// retrier repeats requests that failed in a way that may pass, and whose body
// can be had again. Metadata goes through it; blobs have ladders of their own.
type retrier struct {
	next   http.RoundTripper
	policy Policy
	stall  time.Duration
	host   *endpoint
}

// RoundTrip sends req, as often as the policy says.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	for failures := 1; ; failures++ {
		resp, err := r.once(req)
		var header http.Header
		if err == nil {
			if req.URL.Host == r.host.host {
				r.host.reached.Store(true)
			}
			if !r.policy.Retryable(resp.StatusCode) {
				return resp, nil
			}
			header = resp.Header
		} else if !transient(ctx, err, r.host.reached.Load()) {
			return nil, err
		}
		if r.policy.Exhausted(failures) || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return resp, err
		}
		delay, derr := r.policy.Delay(failures, header)
		if derr != nil {
			return resp, err // the answer itself says more
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		if err := r.policy.Sleep(ctx, delay); err != nil {
			return nil, err
		}
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
}

// once sends req. A server that sends nothing for too long, headers or body,
// loses the request.
func (r *retrier) once(req *http.Request) (*http.Response, error) {
	dog := newWatchdog(req.Context(), r.stall)
	dog.resume(false)
	resp, err := dog.answer(r.next.RoundTrip(req.WithContext(dog.ctx))) //nolint:contextcheck // it is made of the request's
	if err != nil {
		dog.end()
		return nil, dog.explain(err)
	}
	resp.Body = &watchedBody{resp.Body, dog}
	return resp, nil
}

// watchedBody is an answer whose reader does not wait for ever.
type watchedBody struct {
	io.ReadCloser
	dog *watchdog
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.dog.resume(false)
	n, err := b.ReadCloser.Read(p)
	b.dog.pause()
	if err != nil {
		err = b.dog.explain(err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.dog.end()
	return b.ReadCloser.Close()
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
