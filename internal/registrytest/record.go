package registrytest

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// Record is one request and what became of it.
type Record struct {
	Method, Path, Query string
	// CDN says that the request came to the CDN.
	CDN bool
	// Header is the request's.
	Header http.Header
	// Proto is "HTTP/1.1" or "HTTP/2.0".
	Proto string
	// Status of the answer; 0 for one that was cut before it began.
	Status int
	// In and Out are the bytes of the two bodies.
	In, Out int64
}

// Requests returns what was asked so far.
func (r *Registry) Requests() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var records []Record
	for _, rec := range r.records {
		records = append(records, *rec)
	}
	return records
}

// Forget forgets the requests so far.
func (r *Registry) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = nil
}

// Count returns how many requests had one of the methods, separated by "|" ("" is
// any), and a path that holds part.
func (r *Registry) Count(methods, part string) int {
	n := 0
	for _, rec := range r.Requests() {
		if rec.matches(methods, part) {
			n++
		}
	}
	return n
}

// Bytes returns the body bytes that came in and went out with such requests.
func (r *Registry) Bytes(methods, part string) (in, out int64) {
	for _, rec := range r.Requests() {
		if rec.matches(methods, part) {
			in += rec.In
			out += rec.Out
		}
	}
	return in, out
}

func (rec *Record) matches(methods, part string) bool {
	return (methods == "" || slices.Contains(strings.Split(methods, "|"), rec.Method)) && strings.Contains(rec.Path, part)
}

// record wraps a handler with counting and with the faults.
func (r *Registry) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rec := &Record{
			Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery,
			CDN:    strings.HasPrefix(req.URL.Path, "/cdn/"),
			Header: req.Header.Clone(), Proto: req.Proto,
		}
		r.mu.Lock()
		r.records = append(r.records, rec)
		r.mu.Unlock()
		cw := &counter{ResponseWriter: w, r: r, rec: rec}
		req.Body = &countingBody{req.Body, r, rec}
		if f := r.fault(req); f != nil {
			f.Effect(cw, req, next)
			return
		}
		next.ServeHTTP(cw, req)
		if cw.status() == 0 {
			cw.WriteHeader(http.StatusOK)
		}
	})
}

type counter struct {
	http.ResponseWriter
	r   *Registry
	rec *Record
}

func (c *counter) status() int {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	return c.rec.Status
}

func (c *counter) WriteHeader(status int) {
	c.r.mu.Lock()
	again := c.rec.Status != 0
	if !again {
		c.rec.Status = status
	}
	c.r.mu.Unlock()
	if !again {
		c.ResponseWriter.WriteHeader(status)
	}
}

func (c *counter) Write(p []byte) (int, error) {
	if c.status() == 0 {
		c.WriteHeader(http.StatusOK)
	}
	n, err := c.ResponseWriter.Write(p)
	c.r.mu.Lock()
	c.rec.Out += int64(n)
	c.r.mu.Unlock()
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

type countingBody struct {
	io.ReadCloser
	r   *Registry
	rec *Record
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.r.mu.Lock()
	b.rec.In += int64(n)
	b.r.mu.Unlock()
	return n, err
}
