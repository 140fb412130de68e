package httprange

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
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
