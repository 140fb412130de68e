package registrytest

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Fault is something that goes wrong with certain requests.
type Fault struct {
	// Methods are separated by "|"; "" is any.
	Methods string
	// Path is part of the path, "" any.
	Path string
	// Match, where it is set, has to agree too.
	Match func(*http.Request) bool
	// After is how many such requests go well first.
	After int
	// Times is how many go wrong then; 0 is one, a negative number all.
	Times int
	// Effect is what happens: one of this package's, or any function.
	Effect Effect

	seen int
}

// Effect answers a request in place of next, or spoils what next does.
type Effect func(w http.ResponseWriter, req *http.Request, next http.Handler)

// Break adds a fault. Of several that fit a request the first counts.
func (r *Registry) Break(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, &f)
}

// Mend removes all faults.
func (r *Registry) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = nil
}

// Done is closed when the test ends: what an Effect that waits has to watch.
func (r *Registry) Done() <-chan struct{} { return r.done }

func (r *Registry) fault(req *http.Request) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.faults {
		if f.Methods != "" && !slices.Contains(strings.Split(f.Methods, "|"), req.Method) ||
			!strings.Contains(req.URL.Path, f.Path) || f.Match != nil && !f.Match(req) {
			continue
		}
		f.seen++
		n := f.seen - f.After
		if n > 0 && (f.Times < 0 || n <= max(f.Times, 1)) {
			return f
		}
	}
	return nil
}

// Answer answers with a status, a body, and headers given as pairs.
func Answer(status int, body string, headers ...string) Effect {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// CutIn takes n bytes of the request's body and drops the connection.
func CutIn(n int64) Effect {
	return func(_ http.ResponseWriter, req *http.Request, next http.Handler) {
		req.Body = &cutBody{req.Body, n, func() error { return errCut }}
		next.ServeHTTP(discard{http.Header{}}, req)
		panic(http.ErrAbortHandler)
	}
}

// LoseAnswer lets the request do its work, and drops the connection instead of
// answering.
func LoseAnswer(_ http.ResponseWriter, req *http.Request, next http.Handler) {
	next.ServeHTTP(discard{http.Header{}}, req)
	panic(http.ErrAbortHandler)
}

// CutOut sends n bytes of the answer's body and drops the connection.
func CutOut(n int64) Effect {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(&cutWriter{w, n, func() { panic(http.ErrAbortHandler) }}, req)
	}
}

// StallIn takes n bytes of the request's body and then none.
func (r *Registry) StallIn(n int64) Effect {
	return func(_ http.ResponseWriter, req *http.Request, next http.Handler) {
		req.Body = &cutBody{req.Body, n, func() error { r.wait(req); return errCut }}
		next.ServeHTTP(discard{http.Header{}}, req)
		panic(http.ErrAbortHandler)
	}
}

// StallOut sends n bytes of the answer's body and then none.
func (r *Registry) StallOut(n int64) Effect {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(&cutWriter{w, n, func() { r.wait(req); panic(http.ErrAbortHandler) }}, req)
	}
}

// Hang never answers.
func (r *Registry) Hang(_ http.ResponseWriter, req *http.Request, _ http.Handler) {
	r.wait(req)
	panic(http.ErrAbortHandler)
}

func (r *Registry) wait(req *http.Request) {
	select {
	case <-r.done:
	case <-req.Context().Done():
	}
}

var errCut = errors.New("connection cut")

type cutBody struct {
	io.ReadCloser
	left int64
	then func() error
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.then()
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if b.left == 0 && errors.Is(err, io.EOF) {
		err = nil // the cut comes right behind the last byte
	}
	return n, err
}

type cutWriter struct {
	http.ResponseWriter
	left int64
	then func()
}

func (w *cutWriter) Write(p []byte) (int, error) {
	q := p[:min(int64(len(p)), w.left)]
	n, err := w.ResponseWriter.Write(q)
	w.left -= int64(n)
	if len(q) < len(p) && err == nil {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		w.then()
	}
	return n, err
}

// discard is an answer that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// Discard lets next do its work on req, and gives its answer to nobody.
func Discard(next http.Handler, req *http.Request) {
	next.ServeHTTP(discard{http.Header{}}, req)
}
