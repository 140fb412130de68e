package httprange

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

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
		for i := 0; i < 100 && r.Context().Err() == nil; i++ {
			_, _ = w.Write(data[i : i+1])
			_ = http.NewResponseController(w).Flush()
			time.Sleep(25 * time.Millisecond)
		}
	}
	for _, c := range []struct {
		name     string
		handlers []http.HandlerFunc
		minRate  int64
		requests int
		err      error
	}{
		{"before the headers", []http.HandlerFunc{hang, whole(data)}, 0, 2, nil},
		{"halfway", []http.HandlerFunc{halfway, whole(data)}, 0, 2, nil},
		{"in an error's body", []http.HandlerFunc{errorBody, whole(data)}, 0, 2, nil},
		{"slow, which will do", []http.HandlerFunc{drip}, 0, 1, nil},
		{"too slow", []http.HandlerFunc{drip, whole(data)}, 10_000, 2, nil},
		{"for ever", []http.HandlerFunc{hang}, 0, 3, ErrStalled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handlers...)
			g := s.getter()
			g.Policy.Stall, g.Policy.MinRate, g.Policy.Attempts = 1500*time.Millisecond, c.minRate, 3
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
	g := s.getter()
	g.Policy.Stall, g.Policy.MinRate = time.Second, 1<<20
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

// untilAborted is a body that ends in good order once its request is aborted.
type untilAborted struct{ ctx context.Context }

// TestTrickle: one byte a connection is no progress where a rate is wanted.
func TestTrickle(t *testing.T) {
	s := serve(t, cut(content(100), 1))
	g := s.getter()
	g.Policy.MinRate = 1 << 10
	got, err := read(t, g, s.URL, 0, -1, -1)
	if err == nil || len(s.requests()) != 6 {
		t.Errorf("got %d bytes, %v after %d requests", len(got), err, len(s.requests()))
	}
	s = serve(t, cut(content(100), 1))
	if got, err := read(t, s.getter(), s.URL, 0, -1, -1); err != nil || len(got) != 100 {
		t.Errorf("where none is wanted: got %d bytes, %v", len(got), err)
	}
}

func (b untilAborted) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, io.EOF
}

func (untilAborted) Close() error { return nil }

// TestEndOfAnAbortedResponse: a server that is told of the abort may still end
// what it sends as if it were complete.
func TestEndOfAnAbortedResponse(t *testing.T) {
	t.Parallel()
	for _, off := range []int64{0, 10} { // 10: in what is dropped
		requests := 0
		g := &Getter{Policy: fast(), Do: func(req *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{}, Body: untilAborted{req.Context()}}
			if requests++; requests == 2 {
				resp.Body = io.NopCloser(bytes.NewReader(content(100)))
			}
			return resp, nil
		}}
		g.Policy.Stall = 20 * time.Millisecond
		got, err := read(t, g, "http://models.example/", off, -1, -1)
		if err != nil || !bytes.Equal(got, content(100)[off:]) || requests != 2 {
			t.Errorf("stalled, from %d: got %d bytes, %v after %d requests", off, len(got), err, requests)
		}

		requests = 2
		g.Policy.Stall = time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		b, err := g.Open(ctx, get("http://models.example/"), off, -1, -1)
		if err == nil {
			_, err = io.ReadAll(b)
			b.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted, from %d: got %v", off, err)
		}
	}
}

// TestAnswerToAnAbort: a server that is told to stop may answer in good order,
// with nothing. That is not what the content is.
func TestAnswerToAnAbort(t *testing.T) {
	requests := 0
	g := &Getter{Policy: fast(), Do: func(req *http.Request) (*http.Response, error) {
		requests++
		<-req.Context().Done()
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
	}}
	g.Policy.Stall, g.Policy.Attempts = time.Millisecond, 2
	if _, err := read(t, g, "http://127.0.0.1/", 0, -1, -1); !errors.Is(err, ErrStalled) || requests != 2 {
		t.Errorf("got %v after %d requests, want ErrStalled after 2", err, requests)
	}
}
