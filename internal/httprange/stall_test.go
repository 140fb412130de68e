package httprange

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/stall"
)

// guarded returns a getter whose server may be silent for so long.
func (s *server) guarded(limit time.Duration) *Getter {
	g := s.getter()
	client := *s.Client()
	client.Transport = &stall.Transport{Next: client.Transport, Limit: limit}
	g.Do = client.Do
	return g
}

func TestStalls(t *testing.T) {
	t.Parallel()
	data := content(100)
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	halfway := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write(data[:40])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	errorBody := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 99 && r.Context().Err() == nil; i++ {
			_, _ = w.Write(data[i : i+1])
			_ = http.NewResponseController(w).Flush()
			time.Sleep(25 * time.Millisecond)
		}
	}
	for _, c := range []struct {
		name     string
		handlers []http.HandlerFunc
		requests int
		err      error
	}{
		{"before the headers", []http.HandlerFunc{hang, whole(data)}, 2, nil},
		{"halfway", []http.HandlerFunc{halfway, whole(data)}, 2, nil},
		{"in an error's body", []http.HandlerFunc{errorBody, whole(data)}, 2, nil},
		{"a drip", []http.HandlerFunc{drip, whole(data)}, 2, nil},
		{"for ever", []http.HandlerFunc{hang}, 3, stall.ErrStalled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handlers...)
			g := s.guarded(1500 * time.Millisecond)
			g.Policy.Attempts = 3
			got, err := read(t, g, s.URL, 0, -1, -1)
			if !errors.Is(err, c.err) || c.err == nil && (err != nil || !bytes.Equal(got, data)) {
				t.Errorf("got %d bytes, %v, want %v", len(got), err, c.err)
			}
			if n := len(s.requests()); n != c.requests {
				t.Errorf("got %d requests, want %d", n, c.requests)
			}
		})
	}
}

// TestSlowCallerIsNoStall: only the server's time counts.
func TestSlowCallerIsNoStall(t *testing.T) {
	t.Parallel()
	s := serve(t, whole(content(100_000)))
	g := s.guarded(time.Second)
	b, err := g.Open(t.Context(), get(s.URL), 0, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 2 {
		if _, err := io.ReadFull(b, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1200 * time.Millisecond)
	}
	if _, err := io.Copy(io.Discard, b); err != nil || len(s.requests()) != 1 {
		t.Errorf("got %v after %d requests", err, len(s.requests()))
	}
}

// TestTrickle: one byte a connection is no progress.
func TestTrickle(t *testing.T) {
	s := serve(t, cut(content(100), 1))
	g := s.getter()
	got, err := read(t, g, s.URL, 0, -1, -1)
	if err == nil || len(s.requests()) != 8 {
		t.Errorf("got %d bytes, %v after %d requests", len(got), err, len(s.requests()))
	}
}
