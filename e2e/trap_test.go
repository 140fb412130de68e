package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// trap stands before a registry and stops everything once so many bytes of blobs
// have passed: it lets exactly that many through, says so, and holds every
// transfer until the command behind it has ended. Points are bytes and not times,
// so that a seed means the same on every machine.
type trap struct {
	upload   bool // counts what goes up; else what comes down
	at       int64
	manifest bool // springs when an image manifest is put, whatever has passed

	mu     sync.Mutex
	passed int64
	once   sync.Once
	sprung chan struct{} // closed when the point is reached
	ended  chan struct{} // closed by the test when the command has ended
}

func newTrap(upload bool, at int64) *trap {
	return &trap{upload: upload, at: at, sprung: make(chan struct{}), ended: make(chan struct{})}
}

func (t *trap) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uploads := strings.Contains(r.URL.Path, "/blobs/uploads/")
		switch {
		case t.over():
		case t.manifest && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/"):
			t.spring()
			panic(http.ErrAbortHandler)
		case t.manifest:
		case t.upload && uploads:
			r.Body = trapReader{r.Body, t}
		case !t.upload && !uploads && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/"):
			w = trapWriter{w, t}
		}
		next.ServeHTTP(w, r)
	})
}

// over says that the trap has done its work.
func (t *trap) over() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// grant returns how many of n bytes may pass: none when the point is reached.
func (t *trap) grant(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = int(min(int64(n), t.at-t.passed))
	t.passed += int64(n)
	return n
}

// giveBack returns what was granted and did not come.
func (t *trap) giveBack(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passed -= int64(n)
}

// spring says that the point is reached, and waits for the command's end.
func (t *trap) spring() {
	t.once.Do(func() { close(t.sprung) })
	<-t.ended
}

type trapReader struct {
	io.ReadCloser
	t *trap
}

func (r trapReader) Read(p []byte) (int, error) {
	granted := r.t.grant(len(p))
	if granted == 0 {
		r.t.spring()
		// What the command had sent before its end may still be on its way.
		return r.ReadCloser.Read(p)
	}
	n, err := r.ReadCloser.Read(p[:granted])
	r.t.giveBack(granted - n)
	return n, err
}

type trapWriter struct {
	http.ResponseWriter
	t *trap
}

func (w trapWriter) Write(p []byte) (int, error) {
	total := 0
	for total < len(p) {
		granted := w.t.grant(len(p) - total)
		if granted == 0 {
			w.spring()
			panic(http.ErrAbortHandler)
		}
		n, err := w.ResponseWriter.Write(p[total : total+granted])
		total += n
		if err != nil {
			return total, err
		}
	}
	if w.t.reached() {
		w.spring() // after the last byte of all: nothing more will be written
	}
	return total, nil
}

func (w trapWriter) spring() {
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	w.t.spring()
}

func (t *trap) reached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.passed >= t.at
}
