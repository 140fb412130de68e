package client

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// chain counts round trips in a row: each request comes after the longest chain that
// had ended when it was sent; a new connection is one trip more, and TLS another.
type chain struct {
	mu      sync.Mutex
	longest int // of the requests that have ended
}

func (c *chain) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		c.mu.Lock()
		at := c.longest + 1
		c.mu.Unlock()
		trace := &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) {
				if _, secure := i.Conn.(*tls.Conn); !i.Reused && secure {
					at += 2
				} else if !i.Reused {
					at++
				}
			},
		}
		resp, err := next.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.longest = max(c.longest, at)
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// With a small model far away what counts is how often somebody waits for an answer:
// for each verb no more often than with oras-go, of which these are the numbers
// (e2e/bench) but for inspect: an image manifest; MANIFEST and carton.toml at once, where
// HTTP/1.1 needs a second connection for it; a header.
func TestRoundTripsInARow(t *testing.T) {
	files := map[string][]byte{"model/w.safetensors": noise(1, 1_400_000)}
	for i := range byte(9) {
		files[fmt.Sprintf("model/part%d.json", i)] = noise(i+2, 11_000)
	}
	src := cartontest.New(files, nil)
	for name, c := range map[string]struct {
		conf registrytest.Config
		most map[string]int
	}{
		"plain": {registrytest.Config{}, map[string]int{"push": 13, "push again": 7, "pull": 7, "resolve": 2, "inspect": 5}},
		"TLS":   {registrytest.Config{TLS: true, HTTP2: true}, map[string]int{"push": 15, "push again": 7, "pull": 8, "resolve": 3, "inspect": 5}},
	} {
		r := registrytest.New(t, c.conf)
		r.Break(registrytest.Fault{Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			time.Sleep(40 * time.Millisecond)
			next.ServeHTTP(w, req)
		}})
		ref := r.Host + "/org/m:1"
		run := func(verb string, do func(Options) error) {
			t.Run(name+"/"+verb, func(t *testing.T) {
				var trips chain
				opts := Options{Registry: registry.Options{Wrap: trips.wrap}}
				if c.conf.TLS {
					opts.Registry.CAFile = r.CAFile(t)
				} else {
					opts.Registry.PlainHTTP = true
				}
				if err := do(opts); err != nil {
					t.Fatal(err)
				}
				if most := c.most[verb]; trips.longest > most {
					t.Errorf("got %d round trips in a row, want at most %d", trips.longest, most)
				}
			})
		}
		push := func(o Options) error {
			_, err := fresh(o).PushSource(t.Context(), src, "small", ref, PushOptions{})
			return err
		}
		run("push", push)
		run("push again", push)
		run("pull", func(o Options) error {
			_, err := fresh(o).Pull(t.Context(), ref, PullOptions{Output: filepath.Join(t.TempDir(), "m.carton")})
			return err
		})
		run("resolve", func(o Options) error {
			_, err := fresh(o).Resolve(t.Context(), ref)
			return err
		})
		run("inspect", func(o Options) error {
			src, err := fresh(o).Open(t.Context(), ref, OpenOptions{})
			if err != nil {
				return err
			}
			defer src.Close()
			if _, err := carton.ReadInfo(t.Context(), src); err != nil {
				return err
			}
			_, err = inspect.Describe(t.Context(), src, inspect.Options{})
			return err
		})
	}
}
