package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const mib = 1 << 20

// noise makes bytes that are a function of seed.
func noise(seed byte, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// sizeable is a carton of some ranges: raw layers, and with tar layers framed ones.
func sizeable() *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a.safetensors": noise(1, 5*mib+77), "model/b.safetensors": noise(2, 2*mib), "model/c.bin": noise(3, 100_000),
		"model/config.json": []byte("{}"), "misc/readme.md": []byte("# x"), "model/empty": nil,
	}, map[string]string{"model/again.safetensors": "b.safetensors"})
}

// largeBytes is about the size of what its layers hold.
const largeBytes = 7*mib + 77 + 100_000

// impatient are options that wait for nothing.
func impatient() Options {
	return Options{Registry: registry.Options{
		PlainHTTP: true,
		Policy:    registry.Policy{MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, Stall: 300 * time.Millisecond},
		Credential: func(context.Context, string) (auth.Credential, error) {
			return auth.Credential{Username: "ann", Password: "secret"}, nil
		},
	}}
}

// pushLarge puts the carton into a registry. It returns the reference and the
// file that a pull of it makes.
func pushLarge(t *testing.T, r *registrytest.Registry, mapping convert.Options) (ref string, want []byte) {
	t.Helper()
	ref = r.Host + "/org/m:1"
	if _, err := fresh(impatient()).PushSource(t.Context(), sizeable(), "sizeable", ref, PushOptions{Mapping: mapping}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "want.carton")
	if err := carton.Assemble(t.Context(), name, sizeable(), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r.Forget()
	return ref, want
}

// wantFolder wants a folder to hold these names and nothing else.
func wantFolder(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
}

// ranged says that a request is for a range.
func ranged(req *http.Request) bool { return req.Header.Get("Range") != "" }

// Whatever a registry does with ranges, and whatever breaks: the bytes arrive.
func TestPullThroughEveryQuirk(t *testing.T) {
	const blobs = "/blobs/sha256:"
	answer := func(status int, contentRange string) registrytest.Effect {
		return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if contentRange != "" {
				w.Header().Set("Content-Range", contentRange)
			}
			if status == http.StatusPartialContent {
				// The whole, said to be something else.
				req.Header.Del("Range")
				next.ServeHTTP(&restated{w, status}, req)
				return
			}
			w.WriteHeader(status)
		}
	}
	for name, c := range map[string]struct {
		conf    registrytest.Config
		mapping convert.Options
		fault   func(r *registrytest.Registry) registrytest.Fault
		most    int // requests for the largest blob; 0: any number
	}{
		"none":           {},
		"tar layers":     {mapping: convert.Options{Layers: convert.FormTar}},
		"gzip bundles":   {mapping: convert.Options{Compress: convert.CompressGzip}},
		"ignored ranges": {conf: registrytest.Config{Quirks: registrytest.Quirks{NoRanges: true}}, most: 2},
		"ignored ranges of tar layers": {
			conf: registrytest.Config{Quirks: registrytest.Quirks{NoRanges: true}}, mapping: convert.Options{Layers: convert.FormTar},
		},
		"a wrong Content-Range": {fault: func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, Times: -1, Effect: answer(206, "bytes 7-8/5242957")}
		}, most: 2},
		"206 without a Content-Range": {fault: func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, Times: -1, Effect: answer(206, "")}
		}, most: 2},
		"206 with everything": {fault: func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, Times: -1, Effect: answer(206, "bytes 0-5242956/5242957")}
		}, most: 2},
		"416": {fault: func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, Times: -1, Effect: answer(416, "")}
		}, most: 2},
		"416 from the third range on": {fault: func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, After: 2, Times: -1, Effect: answer(416, "")}
		}},
		"a CDN": {conf: registrytest.Config{Quirks: registrytest.Quirks{CDN: true}}},
		"a CDN, and signed addresses that break": {
			conf: registrytest.Config{
				Quirks: registrytest.Quirks{CDN: true},
				Auth:   registrytest.Auth{Users: map[string]string{"ann": "secret"}, Bearer: true},
			},
			fault: func(*registrytest.Registry) registrytest.Fault {
				return registrytest.Fault{Path: "/cdn/", Times: 4, Effect: registrytest.CutOut(200_000)}
			},
		},
		"tokens that expire": {
			conf: registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"ann": "secret"}, Bearer: true}},
			fault: func(r *registrytest.Registry) registrytest.Fault {
				expire := func(w http.ResponseWriter, req *http.Request, next http.Handler) {
					r.ExpireTokens()
					next.ServeHTTP(w, req)
				}
				known := func(req *http.Request) bool { return ranged(req) && req.Header.Get("Authorization") != "" }
				return registrytest.Fault{Path: blobs, Match: known, After: 1, Times: 1, Effect: expire}
			},
		},
		"a stall": {fault: func(r *registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, After: 3, Times: 2, Effect: r.StallOut(300_000)}
		}},
		"no answer": {fault: func(r *registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, After: 1, Times: 3, Effect: r.Hang}
		}},
		"resets with progress": {fault: func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Path: blobs, Match: ranged, Times: 12, Effect: registrytest.CutOut(400_000)}
		}},
		"429 and 503": {fault: func(*registrytest.Registry) registrytest.Fault {
			n := 0
			return registrytest.Fault{Path: blobs, Match: func(req *http.Request) bool { n++; return ranged(req) && n%4 == 0 }, Times: 6, Effect: registrytest.Answer(429+74*(n%2), "")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registrytest.New(t, c.conf)
			ref, want := pushLarge(t, r, c.mapping)
			if c.fault != nil {
				r.Break(c.fault(r))
			}
			dir := t.TempDir()
			out := filepath.Join(dir, "m.carton")
			opts := impatient()
			if c.most > 0 {
				opts.Registry.Policy.Stall = 0 // what a busy machine takes for a stall is one request more
			}
			result, err := fresh(opts).Pull(t.Context(), ref, PullOptions{Output: out})
			if err != nil {
				t.Fatalf("%v, hints %q", err, hint.Of(err))
			}
			if got, _ := os.ReadFile(out); !bytes.Equal(got, want) {
				t.Error("other bytes")
			}
			wantFolder(t, dir, "m.carton")
			if result.BytesResumed != 0 || c.fault == nil && !c.conf.Quirks.NoRanges && result.BytesDownloaded > largeBytes+200_000 {
				t.Errorf("got %+v", result)
			}
			e, _ := sizeable().Manifest().Lookup("model/a.safetensors")
			if n := r.Count("GET", blobs+e.Hash); c.most > 0 && n > c.most {
				t.Errorf("%d requests for one blob, want at most %d", n, c.most)
			}
		})
	}
}

// restated answers with another status.
type restated struct {
	http.ResponseWriter
	status int
}

func (w *restated) WriteHeader(int) { w.ResponseWriter.WriteHeader(w.status) }

// What is refused is not asked for again.
func TestRefusalsAreFinal(t *testing.T) {
	for status, want := range map[int]error{401: registry.ErrUnauthorized, 403: registry.ErrDenied, 404: nil} {
		r := registrytest.New(t, registrytest.Config{})
		ref, _ := pushLarge(t, r, convert.Options{})
		e, _ := sizeable().Manifest().Lookup("model/a.safetensors")
		r.Break(registrytest.Fault{Path: e.Hash, Times: -1, Effect: registrytest.Answer(status, "")})
		dir := t.TempDir()
		_, err := fresh(impatient()).Pull(t.Context(), ref, PullOptions{Output: filepath.Join(dir, "m.carton")})
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), "model/a.safetensors") {
			t.Errorf("%d: got %v", status, err)
		}
		// At most those that were under way: eight by default.
		if n := r.Count("GET", e.Hash); n > 8 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
}

// Wrong bytes name their member, and leave nothing where they are wrong again when
// they are fetched once more.
func TestWrongBytesLeaveNothing(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref, _ := pushLarge(t, r, convert.Options{})
	e, _ := sizeable().Manifest().Lookup("model/a.safetensors")
	r.Corrupt("org/m", digest.NewDigestFromEncoded(digest.SHA256, e.Hash), noise(9, 5*mib+77))
	dir := t.TempDir()
	result, err := fresh(impatient()).Pull(t.Context(), ref, PullOptions{Output: filepath.Join(dir, "m.carton")})
	if !errors.Is(err, carton.ErrChecksum) || !strings.Contains(err.Error(), "model/a.safetensors: got sha256 ") || result != nil {
		t.Errorf("got %v, want ErrChecksum that names the member", err)
	}
	for _, h := range hint.Of(err) {
		if strings.Contains(h.String(), "run it again") {
			t.Errorf("hint %q: to run it again gives the same", h)
		}
	}
	wantFolder(t, dir)
	if _, out := r.Bytes("GET", e.Hash); out > 2*(5*mib+77) {
		t.Errorf("%d bytes were sent, want each at most twice", out)
	}
}

// breaker is a transport that ends the process's part, as far as a test can, once
// a number of bytes of blobs have come: nothing more is read, and the context
// ends.
type breaker struct {
	left atomic.Int64
	kill context.CancelFunc
}

func (b *breaker) wrap(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := rt.RoundTrip(req)
		blob := strings.Contains(req.URL.Path, "/blobs/") || strings.Contains(req.URL.Path, "/cdn/")
		if err == nil && blob && req.Method == http.MethodGet {
			resp.Body = &broken{resp.Body, b}
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type broken struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	b *breaker
}

func (r *broken) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if r.b.left.Add(-int64(n)) < 0 {
		r.b.kill()
		return 0, context.Canceled
	}
	return n, err
}

func (r *broken) Close() error { return r.body.Close() }

// A pull that is broken off at a random byte is gone on with by the same call:
// the output is the same, byte for byte, and what had arrived does not travel
// again, but for what was under way.
func TestPullsThatAreBrokenOff(t *testing.T) {
	trials := testenv.Few(60, 9)
	for _, c := range []struct {
		name    string
		conf    registrytest.Config
		mapping convert.Options
		pull    PullOptions
	}{
		{"file", registrytest.Config{}, convert.Options{}, PullOptions{Output: "m.carton"}},
		{"file of tar layers", registrytest.Config{}, convert.Options{Layers: convert.FormTar}, PullOptions{Output: "m.carton"}},
		{"folder", registrytest.Config{Quirks: registrytest.Quirks{CDN: true}}, convert.Options{}, PullOptions{Unpack: "m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := registrytest.New(t, c.conf)
			ref, want := pushLarge(t, r, c.mapping)
			rnd := rand.New(rand.NewPCG(3, uint64(len(c.name))))
			for trial := range trials / 3 {
				at := 200_000 + rnd.Int64N(largeBytes-200_000)
				pull := c.pull
				dir := t.TempDir()
				if pull.Output != "" {
					pull.Output = filepath.Join(dir, pull.Output)
				} else {
					pull.Unpack = filepath.Join(dir, pull.Unpack)
				}
				first := breakOff(t, ref, pull, at, 1+rnd.IntN(8))
				result, err := fresh(impatient()).Pull(t.Context(), ref, pull)
				if err != nil {
					t.Fatalf("trial %d, at %d: %v", trial, at, err)
				}
				samePull(t, result.Path, want)
				wantFolder(t, dir, filepath.Base(result.Path))
				if got := result.BytesDownloaded + result.BytesResumed; got > largeBytes+300_000 {
					t.Errorf("trial %d, at %d: %d bytes came and %d were used, together more than %d", trial, at, result.BytesDownloaded, result.BytesResumed, largeBytes)
				}
				// A worker's block each, and what came without being written: buffers.
				if lost := at - result.BytesResumed; lost > 9*mib || at > 9*mib/2 && lost > at {
					t.Errorf("trial %d, at %d: %d bytes were used again", trial, at, result.BytesResumed)
				}
				kept := strings.Contains(fmt.Sprint(hint.Of(first)), "run it again to go on: ")
				if kept != (result.BytesResumed > 0) {
					t.Errorf("trial %d, at %d: %d bytes were used again, and the hints were %q", trial, at, result.BytesResumed, hint.Of(first))
				}
			}
		})
	}
}

// breakOff pulls until so many bytes have come, and returns how that ended.
func breakOff(t *testing.T, ref string, pull PullOptions, at int64, workers int) error {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	b := &breaker{kill: kill}
	b.left.Store(at)
	opts := impatient()
	opts.Registry.Wrap, pull.Concurrency = b.wrap, workers
	_, err := fresh(opts).Pull(ctx, ref, pull)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the pull that was to be broken off ended with %v", err)
	}
	return err
}

// samePull wants a file to hold these bytes, or a folder to be a carton that
// assembles to them.
func samePull(t *testing.T, path string, want []byte) {
	t.Helper()
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		src, err := carton.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		path = filepath.Join(t.TempDir(), "again.carton")
		if err := carton.Assemble(t.Context(), path, src, carton.AssembleOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: other bytes (%v)", path, err)
	}
}

// Another model takes the place of what a pull has left.
func TestAnotherModelReplacesAPartial(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref, want := pushLarge(t, r, convert.Options{})
	other := r.Host + "/org/other:1"
	files := map[string][]byte{"model/a.safetensors": noise(7, 6*mib)}
	if _, err := fresh(impatient()).PushSource(t.Context(), cartontest.New(files, nil), "other", other, PushOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, pull := range []PullOptions{{Output: "m"}, {Unpack: "m"}} {
		dir := t.TempDir()
		pull.Output, pull.Unpack = in(dir, pull.Output), in(dir, pull.Unpack)
		breakOff(t, other, pull, 5*mib, 2)
		result, err := fresh(impatient()).Pull(t.Context(), ref, pull)
		if err != nil || result.BytesResumed != 0 {
			t.Fatalf("got %+v, %v, want that nothing is used again", result, err)
		}
		samePull(t, result.Path, want)
		wantFolder(t, dir, "m")
	}
}

func in(dir, name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// A layout is filled by the same means: what an interrupted push left is used.
func TestALayoutGoesOnToo(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref, want := pushLarge(t, r, convert.Options{})
	dir := t.TempDir()
	to := "oci:" + filepath.Join(dir, "layout") + ":1"

	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	b := &breaker{kill: kill}
	b.left.Store(5 * mib)
	opts := impatient()
	opts.Registry.Wrap = b.wrap
	if _, err := fresh(opts).Push(ctx, ref, to, PushOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was broken off", err)
	}
	r.Forget()
	result, err := fresh(impatient()).Push(t.Context(), ref, to, PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, out := r.Bytes("GET", "/blobs/"); out > largeBytes-mib {
		t.Errorf("%d bytes came the second time, although some were there: %+v", out, result)
	}
	file := filepath.Join(dir, "m.carton")
	if _, err := fresh().Pull(t.Context(), to, PullOptions{Output: file}); err != nil {
		t.Fatal(err)
	}
	samePull(t, file, want)
	err = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if strings.Contains(p, ".partial") {
			t.Errorf("%s is left", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A carton on a web server is read by ranges too, and in streams.
func TestAPullFromTheWeb(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "want.carton")
	if err := carton.Assemble(t.Context(), name, sizeable(), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		asked = append(asked, req.Header.Get("Range"))
		mu.Unlock()
		http.ServeFile(w, req, name)
	}))
	defer server.Close()
	opts := impatient()
	opts.Registry.HTTPClient = server.Client()
	result, err := fresh(opts).Pull(t.Context(), server.URL+"/m.carton", PullOptions{Output: filepath.Join(dir, "m.carton")})
	if err != nil {
		t.Fatal(err)
	}
	samePull(t, result.Path, want)
	if n := len(asked); n < 6 || n > 30 {
		t.Errorf("%d requests: %s", n, fmt.Sprint(asked))
	}
	if result.BytesDownloaded > int64(len(want))+mib {
		t.Errorf("%d bytes came for %d", result.BytesDownloaded, len(want))
	}
}
