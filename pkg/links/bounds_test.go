package links_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// TestDeadHostIsAskedOnce: a host that takes connections and is silent costs its
// time limit once, not for each of forty links.
func TestDeadHostIsAskedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var connections atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			t.Cleanup(func() { c.Close() })
		}
	}()
	host := l.Addr().String()
	f := links.NewFetcher(links.Options{AllowHosts: []string{host}, Attempts: 1, Stall: 200 * time.Millisecond})
	errs := make(chan error)
	for i := range 40 {
		go func() {
			link := links.Link{Hash: hashA, URL: fmt.Sprintf("http://%s/%d", host, i)}
			_, err := f.Size(t.Context(), link)
			if err != nil {
				_, err = f.Open(t.Context(), link, 0, -1)
			}
			errs <- err
		}()
	}
	for range 40 {
		if err := <-errs; !errors.Is(err, carton.ErrLink) || !strings.Contains(err.Error(), "stalled") {
			t.Errorf("got %v, want ErrLink that says why", err)
		}
	}
	if n := connections.Load(); n > 2 { // HEAD, and a GET for servers that don't know HEAD
		t.Errorf("the host was asked %d times, want twice at most", n)
	}
}

// TestLinkDecodesInProportion: what becomes a thousand times as long is not read
// to its end.
func TestLinkDecodesInProportion(t *testing.T) {
	testenv.Heavy(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.CopyN(z, endless{}, 300<<20)
		_ = z.Close()
	}))
	defer srv.Close()
	host := srv.Listener.Addr().String()
	f := links.NewFetcher(links.Options{AllowHosts: []string{host}})
	r, err := f.Open(t.Context(), links.Link{Hash: hashA, URL: srv.URL}, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); !errors.Is(err, carton.ErrLimit) || n > 65<<20 {
		t.Errorf("got %d bytes and %v, want ErrLimit soon after 64 MiB", n, err)
	}
}

// TestLinkIsNotReadPastItsSize: a host that said ten bytes and sends more is cut
// off there.
func TestLinkIsNotReadPastItsSize(t *testing.T) {
	data := numbers(10)
	p := &places{
		serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": func(int64, int64) (io.Reader, error) { return endless{}, nil }},
		sizes: map[string]int64{"https://a/1": 10},
	}
	src := links.Resolve(thin(data, "https://a/1"), p)
	if _, err := sized(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	r, err := src.Open(t.Context(), "model/a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); !errors.Is(err, carton.ErrChecksum) || n > 10 {
		t.Errorf("got %d bytes and %v, want ErrChecksum", n, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
