package httprange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/stall"
)

func TestBackoff(t *testing.T) {
	for random, want := range map[float64][]time.Duration{
		0:   {500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second},
		0.5: {375 * time.Millisecond, 750 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second, 22500 * time.Millisecond, 22500 * time.Millisecond},
	} {
		p := Policy{random: func() float64 { return random }}
		var got []time.Duration
		for failures := range want {
			d, err := p.Delay(failures+1, nil)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("random %v:\n%s", random, diff)
		}
	}
	p := Policy{MinBackoff: 3 * time.Second, MaxBackoff: time.Second}
	for failures := range 100 {
		if d, err := p.Delay(failures, nil); err != nil || d > time.Second || d < time.Second/2 {
			t.Errorf("after %d failures: got %s, %v", failures, d, err)
		}
	}
	p = Policy{random: func() float64 { return 0.5 }}
	if d, err := p.Delay(1, http.Header{"Retry-After": {"10"}}); err != nil || d != 10250*time.Millisecond {
		t.Errorf("got %s, %v, want Retry-After and some jitter", d, err)
	}
}

func TestPause(t *testing.T) {
	var told []Retry
	why := errors.New("503")
	p := Policy{Attempts: 4, Retrying: func(r Retry) { told = append(told, r) }}
	if err := p.Pause(t.Context(), 2, time.Nanosecond, why); err != nil {
		t.Error(err)
	}
	if want := (Retry{Number: 2, Of: 3, Wait: time.Nanosecond, Err: why}); len(told) != 1 || told[0] != want {
		t.Errorf("got told %+v, want %+v", told, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Policy{}).Pause(ctx, 1, time.Hour, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRetryable(t *testing.T) {
	for status := 100; status < 700; status++ {
		want := status == 408 || status == 429 || status >= 500 && status < 600 && status != 501 && status != 505
		if got := (Policy{}).Retryable(status); got != want {
			t.Errorf("%d: got %v", status, got)
		}
	}
}

func TestTransient(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.EOF, true},
		{io.ErrUnexpectedEOF, true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		{context.DeadlineExceeded, true}, // a client's own; the caller's is looked at before
		{&net.DNSError{Err: "no such host", IsNotFound: true}, false},
		{&net.DNSError{Err: "server misbehaving", IsTemporary: true}, true},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false},
		{x509.UnknownAuthorityError{}, false},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false},
		{tls.AlertError(40), false},
		{http.ErrSchemeMismatch, false},
		{fmt.Errorf("x: %w", stall.ErrStalled), true},
		{fmt.Errorf("x: %w", ErrNotAllowed), false},
		{fmt.Errorf("x: %w", ErrRetryAfter), false},
		{fmt.Errorf("x: %w", ErrChanged), false},
		{fmt.Errorf("x: %w", ranges.ErrNone), false},
		{fmt.Errorf("x: %w", ErrAnswer), false},
		{&StatusError{Code: 503}, true},
		{&StatusError{Code: 404}, false},
	} {
		if got := Transient(c.err, true); got != c.want {
			t.Errorf("%v: got %v", c.err, got)
		}
	}
	if Transient(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false) {
		t.Error("a host that never answered may yet be asked again")
	}
}

func TestStatusErrorShowsWhatIsForPeople(t *testing.T) {
	for _, c := range []struct{ kind, body, want string }{
		{"text/plain; charset=utf-8", "no such\n\n thing\x1b[2J\u202e!\x00 ", "404 Not Found: no such thing [2J !"},
		{"application/json", `{"error": "gone"}`, `404 Not Found: {"error": "gone"}`},
		{"text/html", "<html>", "404 Not Found"},
		{"", "?", "404 Not Found"},
		{"text/plain", strings.Repeat("é", 100_000), "404 Not Found: " + strings.Repeat("é", 200) + "…"},
	} {
		resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(strings.NewReader(c.body))}
		if got := newStatusError(resp).Error(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.body, got, c.want)
		}
	}
}

// TestErrorBodyIsBounded: 100 MiB of error are not read.
func TestErrorBodyIsBounded(t *testing.T) {
	sent := make(chan int64, 1)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		n, _ := io.Copy(w, io.LimitReader(zeros{}, 100<<20))
		sent <- n
	})
	if _, err := read(t, s.getter(), s.URL, 0, -1, -1); err == nil {
		t.Error("got no error")
	}
	if n := <-sent; n > 50<<20 {
		t.Errorf("the server could send %d bytes", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestErrorsTellNoSecrets(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		err  error
		want string
	}{
		{cause, "cause"},
		{&url.Error{Op: "Get", URL: "https://h/?sig=secret", Err: cause}, "cause"},
		{&url.Error{Op: "Get", URL: "https://h/", Err: &url.Error{Op: "Get", URL: "https://h/", Err: cause}}, "cause"},
		{fmt.Errorf("token: %w", &url.Error{Op: "Get", URL: "https://u:secret@h/p?sig=secret", Err: cause}), `token: Get "https://…@h/p?…": cause`},
		{fmt.Errorf("parse %q: %w", "https://u:secret@[h", cause), `parse "https://…@[h": cause`},
	} {
		got := withoutURL(c.err)
		if got.Error() != c.want || !errors.Is(got, cause) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
