package stall_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carton-oci/carton-oci/internal/stall"
)

// far is the other side of an exchange, in the time of a synctest bubble.
type far func(*http.Request) (*http.Response, error)

func (f far) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// after waits as the other side does, which may hear that nobody waits any more.
func after(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// paced gives n bytes every so often, total in all; total < 0 is for ever.
type paced struct {
	ctx   context.Context
	every time.Duration
	n     int
	total int
}

func (p *paced) Read(b []byte) (int, error) {
	if p.total == 0 {
		return 0, io.EOF
	}
	if err := after(p.ctx, p.every); err != nil {
		return 0, err
	}
	n := min(p.n, len(b))
	if p.total > 0 {
		n = min(n, p.total)
		p.total -= n
	}
	return n, nil
}

func (*paced) Close() error { return nil }

// takes reads a request's body at some pace.
func takes(req *http.Request, n int, every time.Duration) error {
	for b := make([]byte, n); ; {
		if err := after(req.Context(), every); err != nil {
			return err
		}
		switch _, err := io.ReadFull(req.Body, b); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func answer(req *http.Request, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: req}
}

const limit = 30 * time.Second

// TestExchanges: every wait of an exchange ends by its time, and no sooner where
// something moves.
func TestExchanges(t *testing.T) {
	silent := func(d time.Duration) far {
		return func(req *http.Request) (*http.Response, error) {
			if req.Body != nil {
				if err := takes(req, 32<<10, 0); err != nil {
					return nil, err
				}
			}
			return answer(req, http.NoBody), after(req.Context(), d)
		}
	}
	sends := func(n, total int, every time.Duration) far {
		return func(req *http.Request) (*http.Response, error) {
			return answer(req, &paced{req.Context(), every, n, total}), nil
		}
	}
	reads := func(n int, every time.Duration) far {
		return func(req *http.Request) (*http.Response, error) {
			return answer(req, http.NoBody), takes(req, n, every)
		}
	}
	for name, c := range map[string]struct {
		method string
		far    far
		least  time.Duration // that it takes
		most   time.Duration
		err    string // "" is none
	}{
		"a header in time":              {"GET", silent(29 * time.Second), 29 * time.Second, 29 * time.Second, ""},
		"no header":                     {"GET", silent(time.Hour), limit, limit, "r.example has stalled: no answer to GET within 30s"},
		"no header to a POST":           {"POST", silent(time.Hour), limit, limit, "no answer to POST within 30s"},
		"a commit in time":              {"PUT", silent(14 * time.Minute), 14 * time.Minute, 14 * time.Minute, ""},
		"no commit":                     {"PUT", silent(time.Hour), 15 * time.Minute, 15 * time.Minute, "no answer to PUT within 15m0s"},
		"no answer to a chunk":          {"PATCH", silent(time.Hour), 15 * time.Minute, 15 * time.Minute, "no answer to PATCH within 15m0s"},
		"a silent body":                 {"GET", sends(1, -1, time.Hour), limit, 2 * limit, "got 0 bytes of its answer to GET in 30s"},
		"a drip":                        {"GET", sends(1, -1, 1200*time.Millisecond), limit, limit, "bytes of its answer to GET in 30s, want at least 15360"},
		"a drip of larger drops":        {"GET", sends(15_000, -1, 31*time.Second), limit, 2 * limit, "r.example has stalled: got"},
		"short, and slow":               {"GET", sends(1, 20, 1200*time.Millisecond), 24 * time.Second, 24 * time.Second, ""},
		"a modem":                       {"GET", sends(875, 875*600, time.Second), 10 * time.Minute, 10 * time.Minute, ""},
		"in bursts":                     {"GET", sends(8<<10, 8<<14, 12*time.Second), 3 * time.Minute, 4 * time.Minute, ""},
		"it reads a byte a second":      {"PUT", reads(1, time.Second), limit, limit, "r.example has stalled: it took"},
		"it reads nothing":              {"PATCH", reads(1, time.Hour), limit, limit, "it took 0 bytes of a PATCH in 30s"},
		"it reads as a modem would":     {"PUT", reads(4<<10, 5*time.Second), 20 * time.Minute, 24 * time.Minute, ""},
		"it stops reading in the midst": {"PUT", readsThenStops, limit, 3 * limit, "r.example has stalled: it took"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &stall.Transport{Next: c.far, Limit: limit, Commit: 30 * limit}
				began := time.Now()
				err := exchange(t, rt, c.method)
				took := time.Since(began)
				if took < c.least || took > c.most {
					t.Errorf("it took %s, want %s to %s", took, c.least, c.most)
				}
				checkEnd(t, err, c.err)
			})
		})
	}
}

func readsThenStops(req *http.Request) (*http.Response, error) {
	if _, err := io.CopyN(io.Discard, req.Body, 500_000); err != nil {
		return nil, err
	}
	return nil, after(req.Context(), time.Hour)
}

// exchange sends a request, of a MiB where its method has a body, and reads the answer.
func exchange(t *testing.T, rt http.RoundTripper, method string) error {
	t.Helper()
	var body io.Reader
	if method != http.MethodGet {
		body = bytes.NewReader(make([]byte, 1<<20))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "https://r.example/v2/?secret", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func checkEnd(t *testing.T, err error, want string) {
	t.Helper()
	var stalled *stall.Error
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v", err)
	case want != "" && (!errors.Is(err, stall.ErrStalled) || !errors.As(err, &stalled) || stalled.Host != "r.example" ||
		!strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestOurTimeIsFree: neither the source of a request nor the reader of an answer
// is the other side's fault.
func TestOurTimeIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &stall.Transport{Limit: limit, Next: far(func(req *http.Request) (*http.Response, error) {
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return nil, err
			}
			return answer(req, io.NopCloser(strings.NewReader("answer"))), nil
		})}
		source := &paced{t.Context(), time.Hour, 1, 10}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://r.example/", source)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for range 6 {
			time.Sleep(time.Hour)
			if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("got %d bytes, %v, want io.EOF", n, err)
		}
	})
}

// TestSecondBody: a body that is sent again, to another connection, is watched too.
func TestSecondBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &stall.Transport{Limit: limit, Next: far(func(req *http.Request) (*http.Response, error) {
			b, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req.Body = b
			return nil, takes(req, 1, time.Second)
		})}
		checkEnd(t, exchange(t, rt, http.MethodPut), "it took")
	})
}

// goodEnd is a body that ends in good order once its request is aborted.
type goodEnd struct{ ctx context.Context }

func (b goodEnd) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, io.EOF
}

func (goodEnd) Close() error { return nil }

// TestAnswersToAnAbort: a server that is told to stop may answer in good order,
// with nothing, and may end what it sends as if that were all. Neither is what it
// has.
func TestAnswersToAnAbort(t *testing.T) {
	for name, f := range map[string]far{
		"answers": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return answer(req, http.NoBody), nil
		},
		"ends": func(req *http.Request) (*http.Response, error) { return answer(req, goodEnd{req.Context()}), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &stall.Transport{Next: f}
				checkEnd(t, exchange(t, rt, http.MethodGet), "r.example has stalled")
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://r.example/", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := rt.RoundTrip(req)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("interrupted: got %v", err)
				}
			})
		})
	}
}

func TestMeter(t *testing.T) {
	for _, c := range []struct {
		got    int
		waited time.Duration
		want   bool
	}{
		{0, 0, false},
		{0, time.Second, false},
		{1, 0, true},
		{1, time.Second, false},
		{511, time.Second, false},
		{512, time.Second, true},
		{512, 2 * time.Second, false},
	} {
		var m stall.Meter
		m.Add(c.got, 0)
		m.Add(0, c.waited)
		if got := m.Progressed(); got != c.want {
			t.Errorf("%d bytes in %s: got %v", c.got, c.waited, got)
		}
		if m.Progressed() {
			t.Error("what was told once is told again")
		}
	}
}
