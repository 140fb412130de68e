package stall_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/carton-oci/carton-oci/internal/stall"
)

// BenchmarkBody reads an answer of 64 MiB with the guard and without.
func BenchmarkBody(b *testing.B) {
	const size = 64 << 20
	chunk := make([]byte, 1<<20)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range size / len(chunk) {
			_, _ = w.Write(chunk)
		}
	}))
	defer s.Close()
	for name, rt := range map[string]http.RoundTripper{"bare": http.DefaultTransport, "guarded": &stall.Transport{Next: http.DefaultTransport}} {
		b.Run(name, func(b *testing.B) {
			client := &http.Client{Transport: rt}
			buf := make([]byte, 256<<10)
			b.SetBytes(size)
			for b.Loop() {
				resp, err := client.Get(s.URL)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf); err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}
