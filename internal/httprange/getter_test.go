package httprange

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// fast is a policy whose waits take no time.
func fast() Policy {
	return Policy{
		sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		random: func() float64 { return 0 },
	}
}

// get returns a NewRequest for url.
func get(url string) NewRequest {
	return func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	}
}

// content is n bytes that differ from their neighbours.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// server answers the first requests with one handler each, and all others with
// the last. It notes what was asked.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // a request's Range, or its method where it has none
}

func serve(t *testing.T, handlers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		h := handlers[min(len(s.asked), len(handlers)-1)]
		what := r.Header.Get("Range")
		if what == "" {
			what = r.Method
		}
		s.asked = append(s.asked, what)
		s.mu.Unlock()
		h(w, r)
	}))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// getter reads from s without waits.
func (s *server) getter() *Getter { return &Getter{Do: s.Client().Do, Policy: fast()} }

// requests returns what was asked so far.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// read opens a range and reads it to its end.
func read(t *testing.T, g *Getter, url string, off, n, size int64) ([]byte, error) {
	t.Helper()
	body, err := g.Open(t.Context(), get(url), off, n, size)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// zeroTime is no time: a content without a date.
var zeroTime time.Time
