package links_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/stall"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/links"
)

const hashA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// host is a TLS server that counts its requests.
type host struct {
	*httptest.Server
	requests atomic.Int64
}

func newHost(t *testing.T, h http.HandlerFunc) *host {
	t.Helper()
	s := &host{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// name is the host as the allow-list wants it.
func (s *host) name() string { return strings.TrimPrefix(s.URL, "https://") }

// fetcher trusts the hosts' certificates, and reaches those that it allows.
func fetcher(o links.Options, trust ...*host) *links.HTTPFetcher {
	o.RootCAs = x509.NewCertPool()
	for _, s := range trust {
		o.RootCAs.AddCert(s.Certificate())
	}
	if o.Attempts == 0 {
		o.Attempts = 3
	}
	return links.WithoutBackoff(links.NewFetcher(o))
}

// allowing returns a fetcher that reaches all these hosts.
func allowing(o links.Options, hosts ...*host) *links.HTTPFetcher {
	for _, s := range hosts {
		o.AllowHosts = append(o.AllowHosts, s.name())
	}
	return fetcher(o, hosts...)
}

func fetch(ctx context.Context, f links.Fetcher, url string, off, n int64) ([]byte, error) {
	r, err := f.Open(ctx, links.Link{Hash: hashA, URL: url}, off, n)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func serveContent(b []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}

// numbers is content of n bytes that differ from their neighbours.
func numbers(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

func TestLinkRanges(t *testing.T) {
	data := numbers(10_000)
	s := newHost(t, serveContent(data))
	f := allowing(links.Options{}, s)
	for _, c := range []struct {
		off, n   int64
		from, to int
		err      error
	}{
		{0, -1, 0, 10_000, nil},
		{0, 10, 0, 10, nil},
		{9_990, -1, 9_990, 10_000, nil},
		{10, 20, 10, 30, nil},
		{10_000, -1, 0, 0, nil},
		{0, 0, 0, 0, nil},
		{9_990, 11, 9_990, 10_000, io.ErrUnexpectedEOF},
		{10_000, 1, 0, 0, io.ErrUnexpectedEOF},
		{10_001, -1, 0, 0, io.ErrUnexpectedEOF},
	} {
		got, err := fetch(t.Context(), f, s.URL, c.off, c.n)
		if err != c.err || !bytes.Equal(got, data[c.from:c.to]) { //nolint:errorlint // the end comes bare
			t.Errorf("%d bytes from %d: got %d bytes, %v", c.n, c.off, len(got), err)
		}
	}
	size, err := f.Size(t.Context(), links.Link{URL: s.URL})
	if err != nil || size != 10_000 {
		t.Errorf("size: got %d, %v", size, err)
	}
}

// TestLinkURLsThatAreNeverFollowed: none of them costs a request, a look-up or
// a connection.
func TestLinkURLsThatAreNeverFollowed(t *testing.T) {
	f := links.NewFetcher(links.Options{AllowHosts: []string{"allowed.example"}, Attempts: 1})
	for _, url := range []string{
		"http://example.com/x", // plain http: on request only
		"file:///etc/passwd",
		"ftp://allowed.example/x",
		"data:text/plain,x",
		"/etc/passwd",
		"//example.com/x",
		"https:example.com",
		"https:///x",
		"https://169.254.169.254/latest/meta-data/", // link-local: AWS, GCP, Azure
		"https://100.100.100.200/latest/meta-data/", // shared: Alibaba
		"https://127.0.0.1/", "https://10.1.2.3/", "https://172.16.0.1/", "https://192.168.0.1/", "https://0.0.0.0/",
		"https://[::1]/", "https://[::]/", "https://[fd00::1]/", "https://[fe80::1%25eth0]/",
		"https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::1]/",
		"https://[2002:7f00:1::1]/", "https://[2001:0:1::1]/",
		"https://2130706433/", "https://0x7f000001/", "https://017700000001/", "https://127.1/", "https://0177.0.0.1/", "https://127.0.0.1./",
		"https://user:secret@allowed.example/x",
		"https://user@example.com/x",
		"https://exa mple.com/secret",
		"https://user:secret@[broken/x",
	} {
		t.Run(url, func(t *testing.T) {
			_, err := fetch(t.Context(), f, url, 0, -1)
			if !errors.Is(err, carton.ErrLink) {
				t.Fatalf("got %v, want ErrLink", err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the password: %v", err)
			}
			if _, err := f.Size(t.Context(), links.Link{URL: url}); !errors.Is(err, carton.ErrLink) {
				t.Errorf("its size: got %v, want ErrLink", err)
			}
		})
	}
}

func TestLinkHintNamesTheHost(t *testing.T) {
	f := links.NewFetcher(links.Options{Attempts: 1})
	for url, want := range map[string]string{
		"https://10.1.2.3:8443/x":      "if you trust that host: client.Options.AllowLinkHosts 10.1.2.3:8443",
		"http://models.example/x":      "if you trust that host: client.Options.AllowLinkHosts models.example",
		"ftp://models.example/x":       "",
		"https://a:b@models.example/x": "",
	} {
		_, err := fetch(t.Context(), f, url, 0, -1)
		if got := fmt.Sprint(hint.Of(err)); got != "["+want+"]" || !errors.Is(err, httprange.ErrNotAllowed) {
			t.Errorf("%s: got %v with the hint %q, want %q", url, err, got, want)
		}
	}
}

// TestLinkNameOfPrivateAddress: a name is no way around the rule, whatever it
// resolves to when.
func TestLinkNameOfPrivateAddress(t *testing.T) {
	s := newHost(t, serveContent([]byte("secret")))
	url := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	_, err := fetch(t.Context(), fetcher(links.Options{}, s), url, 0, -1)
	if !errors.Is(err, carton.ErrLink) || !errors.Is(err, httprange.ErrNotAllowed) || s.requests.Load() != 0 {
		t.Errorf("got %v after %d requests", err, s.requests.Load())
	}
	want := "if you trust that host: client.Options.AllowLinkHosts " + strings.TrimPrefix(url, "https://")
	if got := fmt.Sprint(hint.Of(err)); got != "["+want+"]" {
		t.Errorf("got the hint %q, want %q", got, want)
	}
}

// TestLinkHostIsAllowedByName: as the URL says it, with or without its port.
func TestLinkHostIsAllowedByName(t *testing.T) {
	s := newHost(t, serveContent([]byte("content")))
	port := s.name()[strings.LastIndexByte(s.name(), ':'):]
	for allow, want := range map[string]bool{
		s.name(): true, "127.0.0.1": true, "127.0.0.1:1": false, "localhost" + port: false, "127.0.0.2": false, port: false,
	} {
		f := fetcher(links.Options{AllowHosts: []string{allow}, Attempts: 1}, s)
		_, err := fetch(t.Context(), f, s.URL, 0, -1)
		if (err == nil) != want {
			t.Errorf("allowed %s: got %v", allow, err)
		}
	}
}

func TestLinkPlainHTTPOnlyWhereAllowed(t *testing.T) {
	s := httptest.NewServer(serveContent([]byte("content")))
	defer s.Close()
	name := strings.TrimPrefix(s.URL, "http://")
	if got, err := fetch(t.Context(), fetcher(links.Options{AllowHosts: []string{name}}), s.URL, 0, -1); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := fetch(t.Context(), fetcher(links.Options{}), s.URL, 0, -1); !errors.Is(err, httprange.ErrNotAllowed) {
		t.Errorf("not allowed: got %v", err)
	}
}

func TestLinkStatusAndRetry(t *testing.T) {
	failures := 2
	s := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			if failures--; failures >= 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			serveContent([]byte("content"))(w, r)
		case "/never":
			http.Error(w, "\x1b[2Jcome back\nlater", http.StatusServiceUnavailable)
		default:
			http.Error(w, "no such thing", http.StatusNotFound)
		}
	})
	f := allowing(links.Options{}, s)
	if got, err := fetch(t.Context(), f, s.URL+"/busy", 0, -1); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	for path, c := range map[string]struct {
		requests int64
		want     string
	}{
		"/never?token=secret": {3, "/never?…: gave up after 3 attempts: 503 Service Unavailable: [2Jcome back later"},
		"/missing":            {1, "/missing: 404 Not Found: no such thing"},
	} {
		before := s.requests.Load()
		_, err := fetch(t.Context(), f, s.URL+path, 0, -1)
		if err == nil || !strings.HasSuffix(err.Error(), c.want) || s.requests.Load()-before != c.requests {
			t.Errorf("%s: got %v after %d requests, want %q after %d", path, err, s.requests.Load()-before, c.want, c.requests)
		}
	}
}

func TestLinkContentThatNeverEnds(t *testing.T) {
	s := newHost(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	got, err := fetch(t.Context(), allowing(links.Options{MaxBytes: 1 << 20}, s), s.URL, 0, -1)
	if !errors.Is(err, carton.ErrLimit) || len(got) > 1<<20 {
		t.Errorf("got %d bytes, %v, want ErrLimit", len(got), err)
	}
}

func TestLinkHostThatStalls(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte{0})
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}
	for name, h := range map[string]http.HandlerFunc{"silent": silent, "a few bytes a second": drip} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHost(t, h)
			f := allowing(links.Options{Stall: 3 * time.Second, Attempts: 2}, s)
			_, err := fetch(t.Context(), f, s.URL, 0, -1)
			if !errors.Is(err, stall.ErrStalled) || !errors.Is(err, carton.ErrLink) || s.requests.Load() != 2 {
				t.Errorf("got %v after %d requests", err, s.requests.Load())
			}
		})
	}
}

func TestLinkSizeThatNobodySays(t *testing.T) {
	s := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/nohead":
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusForbidden) // as for a presigned URL
				return
			}
			serveContent([]byte("content"))(w, r)
		case "/encoded":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", "3")
			_, _ = w.Write([]byte("123"))
		case "/chunked":
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write([]byte("content"))
		default:
			http.NotFound(w, r)
		}
	})
	f := allowing(links.Options{}, s)
	for path, want := range map[string]int64{"/nohead": 7, "/encoded": -1, "/chunked": -1} {
		if got, err := f.Size(t.Context(), links.Link{URL: s.URL + path}); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", path, got, err, want)
		}
	}
	if got, err := f.Size(t.Context(), links.Link{URL: s.URL + "/missing"}); got != -1 || !errors.Is(err, carton.ErrLink) {
		t.Errorf("missing: got %d, %v", got, err)
	}
}

func TestLinkOptionsThatAreWrong(t *testing.T) {
	for _, allow := range []string{"https://example.com", "example.com/x", "", "a:b:c", "example.com:", "user@example.com"} {
		f := links.NewFetcher(links.Options{AllowHosts: []string{allow}})
		if _, err := fetch(t.Context(), f, "https://example.com/", 0, -1); !errors.Is(err, carton.ErrLink) || !strings.Contains(err.Error(), "want HOST or HOST:PORT") {
			t.Errorf("%q: got %v", allow, err)
		}
	}
}

func TestLinkReadIsInterrupted(t *testing.T) {
	s := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("begin"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := allowing(links.Options{}, s).Open(ctx, links.Link{URL: s.URL}, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestLinkHintsNameHosts: a hint that somebody may copy names what is plainly a
// host, or nothing.
func TestLinkHintsNameHosts(t *testing.T) {
	for address, want := range map[string]bool{
		"http://models.example:8080/x":    true,
		"http://[::1]:8080/x":             true,
		"http://$(reboot)/x":              false,
		"http://a;reboot;x/x":             false,
		"http://`reboot`/x":               false,
		"http://a'b/x":                    false,
		"http://a&b/x":                    false,
		"http://127.0.0.１/x":              false,
		"http://ex\u0430mple.com/x":       false, // a Cyrillic letter
		"http://-oProxyCommand=reboot/x":  false,
		"http://a*b/x":                    false,
		"http://a!b/x":                    false,
		"http://models.example:99999999/": false,
	} {
		f := links.NewFetcher(links.Options{Attempts: 1})
		_, err := f.Size(t.Context(), links.Link{Hash: strings.Repeat("a", 64), URL: address})
		if err == nil {
			t.Errorf("%s: no error", address)
		}
		got := false
		for _, h := range hint.Of(err) {
			got = got || slices.Contains(h.Names(), hint.AllowLinkHosts)
		}
		if got != want {
			t.Errorf("%s: got the hints %q, want one: %v", address, hint.Of(err), want)
		}
	}
}
