package stall

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Transport is an [http.RoundTripper] whose exchanges end, as the package says.
type Transport struct {
	// Next does the work.
	Next http.RoundTripper
	// Limit is the stall time; 0 is DefaultLimit.
	Limit time.Duration
	// Commit is how long the answer to a PUT or PATCH may take once all of it has
	// gone out; 0 is Limit.
	Commit time.Duration
}

func (t *Transport) limit() time.Duration {
	if t.Limit > 0 {
		return t.Limit
	}
	return DefaultLimit
}

// CloseIdleConnections closes those of Next that nobody uses.
func (t *Transport) CloseIdleConnections() { (&http.Client{Transport: t.Next}).CloseIdleConnections() }

// RoundTrip sends req. The error of an exchange that stalls, which may be that of
// reading the answer's body, is an [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g := t.guard(req.Context(), Error{Host: req.URL.Host, Method: req.Method})
	req = req.WithContext(g.ctx) // a copy
	answer := header
	if req.Method == http.MethodPut || req.Method == http.MethodPatch {
		answer = commit
	}
	if req.Body == nil || req.Body == http.NoBody {
		g.enter(answer)
	} else {
		wrap := func(b io.ReadCloser) io.ReadCloser {
			return &requestBody{ReadCloser: b, g: g, left: req.ContentLength, answer: answer}
		}
		req.Body = wrap(req.Body)
		if get := req.GetBody; get != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				b, err := get()
				if err != nil {
					return nil, err
				}
				return wrap(b), nil
			}
		}
		g.enter(sending)
	}
	resp, err := t.Next.RoundTrip(req)
	why := g.why()
	switch {
	case why != nil && err == nil:
		// What a server sends once it is told to stop is no answer.
		resp.Body.Close()
		err = why
	case why != nil:
		err = why
	}
	if err != nil {
		g.end()
		return nil, err
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		g.end()
		return resp, nil
	}
	g.enter(body)
	g.pause(body)
	resp.Body = &answerBody{ReadCloser: resp.Body, g: g}
	return resp, nil
}

// requestBody is what the transport reads from: what it has read is on its way.
type requestBody struct {
	io.ReadCloser
	g      *guard
	left   int64 // bytes until all has gone out, negative where nobody said
	answer phase // that follows
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.g.pause(sending)
	n, err := b.ReadCloser.Read(p)
	b.g.progress(sending, n)
	b.left -= int64(n)
	if err == io.EOF || b.left == 0 {
		b.g.enter(b.answer)
		return n, err
	}
	b.g.wait(sending)
	return n, err
}

// answerBody is an answer whose reader does not wait for ever.
type answerBody struct {
	io.ReadCloser
	g     *guard
	ended atomic.Bool
}

func (b *answerBody) Read(p []byte) (int, error) {
	if b.ended.Load() {
		return b.ReadCloser.Read(p)
	}
	b.g.wait(body)
	n, err := b.ReadCloser.Read(p)
	b.g.progress(body, n)
	b.g.pause(body)
	if err == nil {
		return n, nil
	}
	// A server that is told to stop may still end in good order, as if that were all.
	if why := b.g.why(); why != nil && !b.ended.Load() {
		return n, why
	}
	if err == io.EOF {
		b.ended.Store(true)
		b.g.end()
	}
	return n, err
}

func (b *answerBody) Close() error {
	b.ended.Store(true)
	b.g.end() // first: it ends a Read that waits
	return b.ReadCloser.Close()
}
