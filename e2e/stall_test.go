package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: where nothing moves any more the one request is given up, and what
// it was about goes on.

// stallOnce lets half a megabyte of the first large transfer pass, and then
// nothing until the client comes with another request for the same.
type stallOnce struct {
	method, kind string
	size         int64 // of what is large

	mu      sync.Mutex
	path    string        // that stalled
	again   chan struct{} // closed when it is asked for again
	ended   chan struct{} // closed when the stalled request has ended
	retried bool
}

const stallAfter = 500_000

func (s *stallOnce) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.isFirst(r):
			defer close(s.ended)
			if r.Method == http.MethodGet {
				next.ServeHTTP(&stallWriter{ResponseWriter: w, left: stallAfter, again: s.again}, r)
				return
			}
			// A server that no longer reads can't tell that its client has gone.
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, stallAfter), stallReader{s.again}))
			next.ServeHTTP(w, r)
		default:
			s.awaitEnd(r)
			next.ServeHTTP(w, r)
		}
	})
}

// isFirst says whether a request is the one to stall.
func (s *stallOnce) isFirst(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	large := r.Method == http.MethodGet || r.ContentLength >= s.size
	if s.path != "" || r.Method != s.method || !strings.Contains(r.URL.Path, s.kind) || !large {
		return false
	}
	s.path, s.again, s.ended = r.URL.Path, make(chan struct{}), make(chan struct{})
	return true
}

// awaitEnd lets the stalled request end, if this one is for the same, and waits
// until it has: what it got must not be written among what comes now.
func (s *stallOnce) awaitEnd(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != s.path {
		return
	}
	if !s.retried {
		s.retried = true
		close(s.again)
	}
	<-s.ended
}

type stallWriter struct {
	http.ResponseWriter
	left  int
	again chan struct{}
}

func (w *stallWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	if n, err := w.ResponseWriter.Write(p[:n]); err != nil || n == len(p) {
		return n, err
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	<-w.again
	panic(http.ErrAbortHandler)
}

// Unwrap gives http.ResponseController the writer underneath.
func (w *stallWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type stallReader struct{ again chan struct{} }

func (s stallReader) Read([]byte) (int, error) {
	<-s.again
	return 0, io.ErrUnexpectedEOF
}

func TestStallIsGivenUp(t *testing.T) {
	t.Parallel()
	m := weighty()
	for direction, once := range map[string]*stallOnce{
		"push": {method: http.MethodPut, kind: "/blobs/uploads/", size: weightSize},
		"pull": {method: http.MethodGet, kind: "/blobs/sha256:" + hexSum(m.files["model/decoder.bin"])},
	} {
		t.Run(direction, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			m.write(t, u.path("m.carton"))
			s := testregistry.Start(t, testregistry.Options{})
			clean, bad := s.Host+"/org/m:1", s.Front(t, once.middleware).Host+"/org/m:1"
			if direction == "push" {
				u.must(t, "push", "m.carton", bad, "--stall-timeout", "1s")
				u.must(t, "pull", clean, "-o", "back.carton")
			} else {
				u.must(t, "push", "m.carton", clean)
				u.must(t, "pull", bad, "-o", "back.carton", "--stall-timeout", "1s")
			}
			if !once.retried {
				t.Error("nothing has stalled, or nothing was asked again")
			}
			back := readZip(t, u.path("back.carton"))
			same(t, &back.model, m)
		})
	}
}
