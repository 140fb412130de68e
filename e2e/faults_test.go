package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: what may pass is got over, without starting again, and whoever
// loses patience leaves nothing behind but what the next run goes on with.

const cutAt = 500_000 // bytes into a body

// cutting breaks the first connection on which a blob of weights travels, after
// cutAt bytes.
type cutting struct {
	method string
	kind   string // in the path
	cuts   atomic.Int32
}

func (c *cutting) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != c.method || !strings.Contains(r.URL.Path, c.kind) || c.cuts.Load() > 0 {
			next.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodGet {
			next.ServeHTTP(&cutWriter{ResponseWriter: w, left: cutAt, cut: &c.cuts}, r)
			return
		}
		if r.ContentLength > cutAt {
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, cutAt), &cutReader{&c.cuts}))
		}
		next.ServeHTTP(w, r)
		if c.cuts.Load() > 0 {
			panic(http.ErrAbortHandler)
		}
	})
}

type cutWriter struct {
	http.ResponseWriter
	left int
	cut  *atomic.Int32
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	w.cut.Add(1)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// cutReader is where a connection breaks.
type cutReader struct{ cut *atomic.Int32 }

func (r *cutReader) Read([]byte) (int, error) {
	r.cut.Add(1)
	return 0, io.ErrUnexpectedEOF
}

func TestBrokenDownloadContinues(t *testing.T) {
	u := newUser(t)
	m := weighty()
	m.write(t, u.path("m.carton"))
	cut := &cutting{method: http.MethodGet, kind: "/blobs/sha256:" + hexSum(m.files["model/decoder.bin"])}
	s := testregistry.Start(t, testregistry.Options{Middleware: cut.middleware})
	u.must(t, "push", "m.carton", s.Host+"/org/m:1")

	s.Traffic.Reset()
	u.pull(t, s.Host+"/org/m:1", "-o", "back.carton")
	if cut.cuts.Load() == 0 {
		t.Fatal("no connection was cut")
	}
	got := readZip(t, u.path("back.carton"))
	same(t, &got.model, m)
	if out, most := s.Traffic.BlobBytesOut(), int64(2*weightSize+1<<20); out > most {
		t.Errorf("the registry sent %d bytes, want at most %d: what was there already travelled again\n%s", out, most, s.Traffic)
	}
}

func TestBrokenUploadIsDoneAgain(t *testing.T) {
	u := newUser(t)
	weighty().write(t, u.path("m.carton"))
	cut := &cutting{method: http.MethodPut, kind: "/blobs/uploads/"}
	s := testregistry.Start(t, testregistry.Options{Middleware: cut.middleware})
	u.must(t, "push", "m.carton", s.Host+"/org/m:1")
	if cut.cuts.Load() == 0 {
		t.Fatal("no connection was cut")
	}
	u.must(t, "verify", s.Host+"/org/m:1")
	onlyThese(t, u.tmp)
}

func TestBusyRegistryIsAskedAgain(t *testing.T) {
	u := newUser(t)
	m := weighty()
	m.write(t, u.path("m.carton"))
	busy := &busyOnce{}
	s := testregistry.Start(t, testregistry.Options{Middleware: busy.middleware})
	p := u.push(t, "m.carton", s.Host+"/org/m:1")
	if busy.asked.Load() < 2 || p.ModelHash != m.hash() {
		t.Errorf("got %d uploads and model hash %s, want one more than was refused, and %s", busy.asked.Load(), p.ModelHash, m.hash())
	}
}

// busyOnce answers the first upload with 503, and counts uploads.
type busyOnce struct{ asked atomic.Int32 }

func (b *busyOnce) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && b.asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// stalling takes a megabyte of a request and then answers with silence, until
// over is closed.
func stalling(reached chan<- struct{}, over <-chan struct{}, method, kind string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != method || !strings.Contains(r.URL.Path, kind) {
				next.ServeHTTP(w, r)
				return
			}
			select {
			case reached <- struct{}{}:
			default:
			}
			_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
			<-over
		})
	}
}

func TestInterrupted(t *testing.T) {
	m := weighty()
	weights := "/blobs/sha256:" + hexSum(m.files["model/decoder.bin"])
	tests := map[string]struct {
		method, kind string
		args         func(ref string) []string
	}{
		"push":   {http.MethodPut, "/blobs/uploads/", func(ref string) []string { return []string{"push", "m.carton", ref} }},
		"pull":   {http.MethodGet, weights, func(ref string) []string { return []string{"pull", ref, "-o", "out.carton"} }},
		"unpack": {http.MethodGet, weights, func(ref string) []string { return []string{"pull", ref, "--unpack", "out"} }},
		"layout": {http.MethodGet, weights, func(ref string) []string { return []string{"push", ref, "oci:layout:1"} }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			m.write(t, u.path("m.carton"))
			reached, over := make(chan struct{}, 1), make(chan struct{})
			var stall atomic.Bool
			s := testregistry.Start(t, testregistry.Options{Middleware: func(next http.Handler) http.Handler {
				stalled := stalling(reached, over, tt.method, tt.kind)(next)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if stall.Load() {
						stalled.ServeHTTP(w, r)
						return
					}
					next.ServeHTTP(w, r)
				})
			}})
			t.Cleanup(func() { close(over) }) // before the server's end, which waits for it
			ref := s.Host + "/org/m:1"
			if name != "push" {
				u.must(t, "push", "m.carton", ref)
			}
			stall.Store(true)
			before := snapshot(t, u.dir, u.tmp)

			cmd := exec.Command(cartonOCI, tt.args(ref)...)
			cmd.Dir, cmd.Env = u.dir, u.env
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-reached:
			case <-time.After(20 * time.Second):
				_ = cmd.Process.Kill()
				t.Fatalf("the transfer did not begin\n%s", &stderr)
			}
			time.Sleep(100 * time.Millisecond) // let something be written
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			hangs := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			hangs.Stop()
			if got := cmd.ProcessState.ExitCode(); got != 130 {
				t.Errorf("exit code: got %d, want 130\n%s", got, &stderr)
			}
			line, rest, _ := strings.Cut(stderr.String(), "\n")
			if line != "carton-oci: interrupted" || rest != "" && (!strings.HasPrefix(rest, "hint: ") || strings.Count(rest, "\n") != 1) {
				t.Errorf("standard error: got %q, want that it was interrupted, and at most a hint", &stderr)
			}
			// What has arrived is kept for the next run, under no name that anybody
			// would take for the model.
			for path := range snapshot(t, u.dir, u.tmp) {
				_, there := before[path]
				// An empty layout may be there: it was made before the first blob.
				if !there && !strings.Contains(path, "partial") && !strings.Contains(path, "/layout") {
					t.Errorf("%s is left behind", path)
				}
				if strings.Contains(path, "ingest/") {
					t.Errorf("%s is left behind", path)
				}
			}
			stall.Store(false)
			u.must(t, tt.args(ref)...)
			for path := range snapshot(t, u.dir, u.tmp) {
				if strings.Contains(path, "partial") {
					t.Errorf("after the second run %s is left behind", path)
				}
			}
		})
	}
}
