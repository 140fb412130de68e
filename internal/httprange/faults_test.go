package httprange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cut honours a range, but breaks the connection after n bytes.
func cut(data []byte, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var from, to int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			to = len(data) - 1
		}
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
		}
		w.Header().Set("Content-Length", strconv.Itoa(to+1-from))
		if r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusPartialContent)
		}
		if n < to+1-from {
			_, _ = w.Write(data[from : from+n])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(data[from : to+1])
	}
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// reset breaks the connection before a byte of the response.
func reset(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestFaultsThatPass(t *testing.T) {
	data := content(100_000)
	for _, c := range []struct {
		name     string
		handlers []http.HandlerFunc
		asked    []string
	}{
		{"cut", []http.HandlerFunc{cut(data, 40_000), whole(data)}, []string{"GET", "bytes=40000-99999"}},
		{"cut in every response", []http.HandlerFunc{cut(data, 9000)}, []string{
			"GET", "bytes=9000-99999", "bytes=18000-99999", "bytes=27000-99999", "bytes=36000-99999", "bytes=45000-99999",
			"bytes=54000-99999", "bytes=63000-99999", "bytes=72000-99999", "bytes=81000-99999", "bytes=90000-99999", "bytes=99000-99999",
		}},
		{"reset", []http.HandlerFunc{reset, whole(data)}, []string{"GET", "GET"}},
		{"five failures", []http.HandlerFunc{status(500), status(502), status(503), status(429), status(408), whole(data)}, []string{"GET", "GET", "GET", "GET", "GET", "GET"}},
		{"four failures, bytes, four failures", []http.HandlerFunc{
			reset, status(500), reset, status(500), cut(data, 40_000), reset, status(500), reset, status(500), whole(data),
		}, []string{"GET", "GET", "GET", "GET", "GET", "bytes=40000-99999", "bytes=40000-99999", "bytes=40000-99999", "bytes=40000-99999", "bytes=40000-99999"}},
		{"cut, and no ranges then", []http.HandlerFunc{cut(data, 40_000), noRanges(data)}, []string{"GET", "bytes=40000-99999"}},
		{"cut, and cut again before that", []http.HandlerFunc{cut(data, 40_000), func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			cut(data, 30_000)(w, r)
		}, noRanges(data)}, []string{"GET", "bytes=40000-99999", "bytes=40000-99999"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.handlers...)
			got, err := read(t, s.getter(), s.URL, 0, -1, 100_000)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			if diff := cmp.Diff(c.asked, s.requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFaultsThatDoNot(t *testing.T) {
	for _, c := range []struct {
		name     string
		handler  http.HandlerFunc
		requests int
		want     string
	}{
		{"404", status(404), 1, "404 Not Found"},
		{"401", status(401), 1, "401 Unauthorized"},
		{"403", status(403), 1, "403 Forbidden"},
		{"501", status(501), 1, "501 Not Implemented"},
		{"a status without a name", status(499), 1, "status 499"},
		{"5xx for ever", status(503), 8, "gave up after 8 attempts: 503 Service Unavailable"},
		{"resets for ever", reset, 8, "gave up after 8 attempts: unexpected EOF"},
		{"no byte for ever", cut(content(100), 0), 8, "gave up after 8 attempts: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.handler)
			_, err := read(t, s.getter(), s.URL+"/x?sig=secret", 0, -1, -1)
			var e *Error
			if !errors.As(err, &e) || e.URL != s.URL+"/x?…" || !strings.HasPrefix(e.Err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if n := len(s.requests()); n != c.requests {
				t.Errorf("got %d requests, want %d", n, c.requests)
			}
		})
	}
}

// TestRetryingIsTold: of every attempt that another follows, not of the last.
func TestRetryingIsTold(t *testing.T) {
	data := content(100)
	s := serve(t, cut(data, 40), status(503, "Content-Type", "text/plain"), whole(data))
	g := s.getter()
	var told []int
	g.Policy.Retrying = func(r Retry) {
		if r.Err == nil {
			t.Error("got no reason")
		}
		told = append(told, r.Number)
	}
	if _, err := read(t, g, s.URL, 0, -1, -1); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2}, told); diff != "" {
		t.Error(diff)
	}
}

func TestRetryAfter(t *testing.T) {
	data := content(10)
	for _, c := range []struct {
		name, value string
		wait        time.Duration // what is waited
		err         bool
	}{
		{"seconds", "7", 7 * time.Second, false},
		{"none", "", 500 * time.Millisecond, false},
		{"less than the backoff", "0", 500 * time.Millisecond, false},
		{"a date", "Mon, 01 Jan 2024 00:00:09 GMT", 9 * time.Second, false},
		{"a date that is past", "Sun, 31 Dec 2023 00:00:00 GMT", 500 * time.Millisecond, false},
		{"nonsense", "soon", 500 * time.Millisecond, false},
		{"at the limit", "120", 2 * time.Minute, false},
		{"over the limit", "121", 0, true},
		{"far over it", "1000000000", 0, true},
		{"beyond any number", strings.Repeat("9", 30), 0, true},
		{"a far date", "Mon, 01 Jan 2024 01:00:00 GMT", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, status(429, "Retry-After", c.value), whole(data))
			g := s.getter()
			var waited []time.Duration
			g.Policy.sleep = func(_ context.Context, d time.Duration) error {
				waited = append(waited, d)
				return nil
			}
			g.Policy.now = func() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }
			_, err := read(t, g, s.URL, 0, -1, -1)
			if c.err {
				var code *StatusError
				if !errors.Is(err, ErrRetryAfter) || !errors.As(err, &code) || code.Code != 429 || len(s.requests()) != 1 {
					t.Errorf("got %v after %d requests", err, len(s.requests()))
				}
				return
			}
			if diff := cmp.Diff([]time.Duration{c.wait}, waited); err != nil || diff != "" {
				t.Errorf("got %v\n%s", err, diff)
			}
		})
	}
}

// TestEveryRequestGoesToTheFirstURL: where a redirect led to may have expired.
func TestEveryRequestGoesToTheFirstURL(t *testing.T) {
	data := content(100)
	var given atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, fmt.Sprintf("/signed/%d", given.Add(1)), http.StatusTemporaryRedirect)
			return
		}
		if want := fmt.Sprintf("/signed/%d", given.Load()); r.URL.Path != want {
			http.Error(w, "expired", http.StatusForbidden)
			return
		}
		cut(data, 30)(w, r)
	})
	got, err := read(t, s.getter(), s.URL, 0, -1, -1)
	if err != nil || !bytes.Equal(got, data) || given.Load() != 4 {
		t.Errorf("got %d bytes, %v after %d redirects", len(got), err, given.Load())
	}
}

func TestInterrupted(t *testing.T) {
	data := content(100)
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(data[:10])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	g := s.getter()
	b, err := g.Open(ctx, get(s.URL), 0, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := io.ReadFull(b, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := g.Open(ctx, get(s.URL), 0, -1, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("open: got %v", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestCloseEndsARead that is under way in another goroutine.
func TestCloseEndsARead(t *testing.T) {
	began := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(began)
		<-r.Context().Done()
	})
	b, err := s.getter().Open(t.Context(), get(s.URL), 0, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := b.Read(make([]byte, 1))
		done <- err
	}()
	<-began
	b.Close()
	if err := <-done; err == nil {
		t.Error("the read gave no error")
	}
}

// TestRefusedConnections: nobody waits for a host that never answered; one that did
// may be starting again.
func TestRefusedConnections(t *testing.T) {
	for answered, want := range map[bool]int{false: 1, true: fast().attempts()} {
		calls := 0
		g := &Getter{Policy: fast(), Answered: new(atomic.Bool), Do: func(*http.Request) (*http.Response, error) {
			calls++
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}}
		g.Answered.Store(answered)
		if _, err := read(t, g, "http://127.0.0.1", 0, -1, -1); !errors.Is(err, syscall.ECONNREFUSED) || calls != want {
			t.Errorf("answered before: %v: got %v after %d calls, want %d", answered, err, calls, want)
		}
	}
}

// TestCallersErrors: CheckResponse names them, and an error of Do says itself
// whether it may pass.
func TestCallersErrors(t *testing.T) {
	mine := Final("no such blob")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
	})
	g := s.getter()
	g.CheckResponse = func(resp *http.Response) error {
		b, err := io.ReadAll(resp.Body)
		if err != nil || len(b) != maxErrorBody {
			t.Errorf("got %d bytes of the body, %v", len(b), err)
		}
		return mine
	}
	if _, err := read(t, g, s.URL, 0, -1, -1); !errors.Is(err, mine) || len(s.requests()) != 1 {
		t.Errorf("got %v", err)
	}
	calls := 0
	g = &Getter{Policy: fast(), Do: func(*http.Request) (*http.Response, error) {
		if calls++; calls < 3 {
			return nil, errors.New("may pass")
		}
		return nil, mine
	}}
	if _, err := read(t, g, s.URL, 0, -1, -1); !errors.Is(err, mine) || calls != 3 {
		t.Errorf("got %v after %d calls", err, calls)
	}
	if _, err := g.Open(t.Context(), func(context.Context) (*http.Request, error) { return nil, mine }, 0, -1, -1); err != mine { //nolint:errorlint // nothing is known of the URL
		t.Errorf("got %v", err)
	}
}

// A connection that ends without an answer is no end of what is read: who reads up to
// io.EOF would take what has come for all of it.
func TestAConnectionThatEndsIsNoEnd(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer srv.Close()
	g := Getter{Do: srv.Client().Do, Policy: Policy{Attempts: 2, MinBackoff: time.Millisecond}}
	_, err := g.Open(t.Context(), func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, http.NoBody)
	}, 0, -1, -1)
	if !errors.Is(err, ErrGaveUp) || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want to give up, and no io.EOF", err)
	}
}
