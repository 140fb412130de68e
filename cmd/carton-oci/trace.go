package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carton-oci/carton-oci/internal/secret"
)

// trace is --debug: a line for every request when its answer begins, and the
// peak of memory at the end. It shows neither headers nor bodies, and of a URL
// neither user info nor the query: any of them may be a secret.
type trace struct {
	mu       sync.Mutex
	w        io.Writer
	requests atomic.Int64
}

// wrap puts the log around a transport.
func (t *trace) wrap(next http.RoundTripper) http.RoundTripper { return &tracer{t, next} }

type tracer struct {
	trace *trace
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *tracer) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := t.next.RoundTrip(req)
	var answer string
	switch {
	case err != nil:
		answer = secret.InText(err.Error())
	case resp.ContentLength >= 0:
		answer = fmt.Sprintf("%d (%d bytes)", resp.StatusCode, resp.ContentLength)
	default:
		answer = fmt.Sprint(resp.StatusCode)
	}
	what := req.Method + " " + secret.URL(req.URL)
	if r := req.Header.Get("Range"); r != "" {
		what += " " + r
	}
	t.trace.requests.Add(1)
	t.trace.linef("%s: %s, %d ms", what, answer, time.Since(start).Milliseconds())
	return resp, err
}

// CloseIdleConnections closes those of the transport inside.
func (t *tracer) CloseIdleConnections() {
	(&http.Client{Transport: t.next}).CloseIdleConnections()
}

// end prints what is known at the end.
func (t *trace) end() {
	t.linef("%s", count(int(t.requests.Load()), "request"))
	if bytes := peakMemory(); bytes > 0 {
		t.linef("peak memory: %.1f MiB", float64(bytes)/(1<<20))
	}
}

func (t *trace) linef(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.w, "debug: "+remark(fmt.Sprintf(format, args...)))
}
