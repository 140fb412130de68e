package testregistry

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Kind says what a request is about.
type Kind string

// The kinds of requests.
const (
	Any      Kind = ""
	Base     Kind = "base"     // /v2/
	Blob     Kind = "blob"     // a blob
	Upload   Kind = "upload"   // an upload of a blob
	Manifest Kind = "manifest" // an image manifest or its tag
	Tokens   Kind = "token"    // the token server
	Other    Kind = "other"
)

func kindOf(path string) Kind {
	switch {
	case path == "/v2/":
		return Base
	case path == "/token":
		return Tokens
	case strings.Contains(path, "/blobs/uploads/"):
		return Upload
	case strings.Contains(path, "/blobs/"):
		return Blob
	case strings.Contains(path, "/manifests/"):
		return Manifest
	}
	return Other
}

// Request is one request that was answered.
type Request struct {
	Method string
	Path   string
	Query  string
	Kind   Kind
	Range  string // of the request
	Scheme string // of its Authorization: "", "Basic", "Bearer"
	Status int
	In     int64 // bytes of the request's body that were read
	Out    int64 // bytes of the response's body
}

// String returns the request as a line of a log.
func (r Request) String() string {
	return fmt.Sprintf("%s %s?%s [%s] %s: %d, %d in, %d out", r.Method, r.Path, r.Query, r.Range, r.Scheme, r.Status,
		r.In, r.Out)
}

// Traffic is what a server was asked and what it answered.
type Traffic struct {
	mu       sync.Mutex
	requests []Request
	underWay atomic.Int64 // no WaitGroup: requests come while somebody waits for the last one
}

// Settle waits until no request is under way: those of a client that was killed
// may outlive it.
func (t *Traffic) Settle() {
	for t.underWay.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Requests returns the requests so far, in the order in which they ended.
func (t *Traffic) Requests() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Request(nil), t.requests...)
}

// Reset forgets them.
func (t *Traffic) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = nil
}

// Count returns how many requests had the method ("" for any) and kind.
func (t *Traffic) Count(method string, kind Kind) int {
	count := 0
	for _, r := range t.Requests() {
		if (method == "" || r.Method == method) && (kind == Any || r.Kind == kind) {
			count++
		}
	}
	return count
}

// BlobBytesIn returns how many bytes of blobs were sent to the server,
// completed or not.
func (t *Traffic) BlobBytesIn() int64 {
	var sum int64
	for _, r := range t.Requests() {
		if r.Kind == Upload {
			sum += r.In
		}
	}
	return sum
}

// BlobBytesOut returns how many bytes of blobs the server sent.
func (t *Traffic) BlobBytesOut() int64 {
	var sum int64
	for _, r := range t.Requests() {
		if r.Kind == Blob && r.Method == http.MethodGet && r.Status < 300 {
			sum += r.Out
		}
	}
	return sum
}

// String returns the requests, one a line.
func (t *Traffic) String() string {
	var b strings.Builder
	for _, r := range t.Requests() {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

func (t *Traffic) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.underWay.Add(1)
		defer t.underWay.Add(-1)
		scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		req := Request{
			Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Kind: kindOf(r.URL.Path),
			Range: r.Header.Get("Range"), Scheme: scheme,
		}
		in := &countingBody{ReadCloser: r.Body}
		r.Body = in
		out := &countingWriter{ResponseWriter: w, status: http.StatusOK}
		// A handler that gives up panics with http.ErrAbortHandler.
		defer func() {
			req.Status, req.In, req.Out = out.status, in.n, out.n
			t.mu.Lock()
			defer t.mu.Unlock()
			t.requests = append(t.requests, req)
		}()
		next.ServeHTTP(out, r)
	})
}

type countingBody struct {
	io.ReadCloser
	n int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}

type countingWriter struct {
	http.ResponseWriter
	status int
	n      int64
}

func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.n += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController the writer underneath.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
