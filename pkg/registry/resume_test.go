package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// errKilled is what a client's transport fails with once the client is dead.
var errKilled = errors.New("killed")

// mortal is a client's network that dies: nothing goes out any more, no upload is
// cancelled, nothing is tidied up.
type mortal struct {
	next http.RoundTripper
	ctx  context.Context
}

func (m mortal) RoundTrip(req *http.Request) (*http.Response, error) {
	if m.ctx.Err() != nil {
		return nil, errKilled
	}
	return m.next.RoundTrip(req)
}

// pushUntil pushes with a new client that is killed when the registry has taken
// so many bytes of a request's body. It returns whether that was before the end.
func pushUntil(t *testing.T, reg *registrytest.Registry, opts Options, blob []byte, die int64, w layout.Watch) bool {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	opts.Wrap = func(next http.RoundTripper) http.RoundTripper { return mortal{next, ctx} }
	repo := dial(t, reg, "org/m", opts)
	if die >= 0 {
		reg.Break(registrytest.Fault{Methods: "PUT|PATCH", Path: uploads, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			req.Body = &fuse{ReadCloser: req.Body, left: die, kill: kill}
			next.ServeHTTP(w, req)
			if ctx.Err() != nil {
				panic(http.ErrAbortHandler) // its connection is gone as well
			}
		}})
	}
	err := repo.Push(ctx, layer(describeBytes(blob), opener(blob)), w)
	reg.Mend()
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return err != nil
}

// fuse kills the client behind some bytes, and the connection with it.
type fuse struct {
	io.ReadCloser
	left int64
	kill context.CancelFunc
}

func (f *fuse) Read(p []byte) (int, error) {
	if f.left <= 0 {
		f.kill()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := f.ReadCloser.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	if f.left == 0 && errors.Is(err, io.EOF) {
		err = nil // it blows right behind the last byte
	}
	return n, err
}

// TestKillAndResume kills clients at random points, of uploads in one piece and
// in chunks, at registries of several kinds. The last client brings the blob to
// its end with no more bytes sent than were missing.
func TestKillAndResume(t *testing.T) {
	const size = 24 << 20
	blob := random(11, size)
	desc := describeBytes(blob)
	kinds := []registrytest.Quirks{
		{},
		{NewLocation: true},
		{NewLocation: true, RelativeLocation: true},
		{QuayRange: true},
	}
	trials, err := strconv.ParseUint(cmp.Or(os.Getenv("CARTON_OCI_TRIALS"), strconv.Itoa(testenv.Few(64, 12))), 10, 32) // make soak
	if err != nil {
		t.Fatal(err)
	}
	var resumes atomic32
	for seed := range trials {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 3))
			reg := registrytest.New(t, registrytest.Config{Quirks: kinds[seed%4]})
			opts := Options{StateDir: t.TempDir()}
			if seed%2 == 1 {
				opts.ChunkSize = 1<<20 + rng.Int64N(8<<20)
			}
			deaths := 0
			for range 1 + rng.IntN(3) {
				if !pushUntil(t, reg, opts, blob, rng.Int64N(size/2), layout.Watch{}) {
					break
				}
				deaths++
			}
			var resumed, sent int64
			if _, ok := reg.Blob("org/m", desc.Digest); !ok {
				w := layout.Watch{Resumed: func(n int64) { resumed = n }, Sent: func(n int64) { sent += n }}
				pushUntil(t, reg, opts, blob, -1, w)
				if resumed+sent != size {
					t.Errorf("%d bytes were there and %d were sent, want %d together", resumed, sent, size)
				}
			}
			if resumed > 0 {
				resumes.add()
			}
			if got, ok := reg.Blob("org/m", desc.Digest); !ok || !bytes.Equal(got, blob) {
				t.Error("the registry has other bytes than were pushed")
			}
			if in, _ := reg.Bytes("PUT|PATCH", uploads); in > size+int64(deaths)*(1<<20) {
				t.Errorf("%d bytes came in, want %d and little more, after %d deaths", in, size, deaths)
			}
			if n := reg.Uploads(); n > deaths { // one that got nothing is replaced
				t.Errorf("%d uploads are left open after %d deaths", n, deaths)
			}
			if left := files(t, opts.StateDir); len(left) != 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
	t.Cleanup(func() {
		if n := resumes.get(); n < int(trials)/2 {
			t.Errorf("only %d of %d trials had something to resume", n, trials)
		}
		testenv.Checked(t, int(trials), "uploads killed and gone on with") //nolint:gosec // as many as a machine can do
	})
}

type atomic32 struct {
	mu sync.Mutex
	n  int
}

func (a *atomic32) add() { a.mu.Lock(); a.n++; a.mu.Unlock() }
func (a *atomic32) get() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// files returns the names of what a state folder remembers.
func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "uploads", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// halfway leaves an upload of blob that a killed client has begun, and returns
// its state file.
func halfway(t *testing.T, reg *registrytest.Registry, opts Options, blob []byte) string {
	t.Helper()
	if !pushUntil(t, reg, opts, blob, int64(len(blob)/2), layout.Watch{}) {
		t.Fatal("the client was not killed")
	}
	list := files(t, opts.StateDir)
	if len(list) != 1 {
		t.Fatalf("got %d state files, want 1", len(list))
	}
	return list[0]
}

// TestResumeAnswers: what the registry says of a remembered upload is what is
// believed; and where it can't be used, a new one begins.
func TestResumeAnswers(t *testing.T) {
	blob := random(1, 8<<20)
	desc := describeBytes(blob)
	status := func(e registrytest.Effect) registrytest.Fault {
		return registrytest.Fault{Methods: "GET", Path: uploads, Effect: e}
	}
	for name, tt := range map[string]struct {
		fault   *registrytest.Fault
		resumed int64 // last told; -1: nothing
		posts   int
	}{
		"half":                  {resumed: 4 << 20},
		"gone":                  {fault: ptr(status(registrytest.Answer(404, ""))), resumed: -1, posts: 1},
		"nothing has come":      {fault: ptr(status(registrytest.Answer(204, "", "Range", "0-0"))), resumed: -1, posts: 1},
		"more than there is":    {fault: ptr(status(registrytest.Answer(204, "", "Range", "0-99999999"))), resumed: -1, posts: 1},
		"no Range":              {fault: ptr(status(registrytest.Answer(204, ""))), resumed: -1, posts: 1},
		"another user's":        {fault: ptr(status(registrytest.Answer(403, ""))), resumed: -1, posts: 1},
		"too little":            {fault: ptr(status(registrytest.Answer(204, "", "Range", "0-1048575"))), resumed: 1 << 20},
		"too much":              {fault: ptr(status(registrytest.Answer(204, "", "Range", "0-6291455"))), resumed: 6 << 20},
		"all, but it is a half": {fault: ptr(status(registrytest.Answer(204, "", "Range", "0-8388607"))), resumed: 0, posts: 1},
		"goes on elsewhere": {
			fault:   ptr(status(registrytest.Answer(204, "", "Range", "0-4194303", "Location", "http://other.example/"))),
			resumed: -1, posts: 1,
		},
		"broken":      {fault: ptr(registrytest.Fault{Methods: "GET", Path: uploads, Times: -1, Effect: registrytest.Answer(500, "")}), resumed: -1, posts: 1},
		"refuses it":  {fault: ptr(registrytest.Fault{Methods: "PUT", Path: uploads, Effect: registrytest.Answer(400, "")}), resumed: 0, posts: 1},
		"lets it go":  {fault: ptr(registrytest.Fault{Methods: "PUT", Path: uploads, Effect: registrytest.Answer(404, "")}), resumed: 0, posts: 1},
		"cuts it":     {fault: ptr(put(registrytest.CutIn(1 << 20))), resumed: 4 << 20},
		"loses it":    {fault: ptr(put(registrytest.LoseAnswer)), resumed: 4 << 20},
		"503s":        {fault: ptr(put(registrytest.Answer(503, ""))), resumed: 4 << 20},
		"slow at 416": {fault: ptr(put(registrytest.Answer(416, ""))), resumed: 0, posts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{})
			opts := Options{StateDir: t.TempDir()}
			halfway(t, reg, opts, blob)
			reg.Forget()
			if tt.fault != nil {
				reg.Break(*tt.fault)
			}
			told := int64(-1)
			repo := dial(t, reg, "org/m", opts)
			if err := repo.Push(t.Context(), layer(desc, opener(blob)), layout.Watch{Resumed: func(n int64) { told = n }}); err != nil {
				t.Fatal(err)
			}
			if got, ok := reg.Blob("org/m", desc.Digest); !ok || !bytes.Equal(got, blob) {
				t.Error("the registry has other bytes than were pushed")
			}
			if told != tt.resumed {
				t.Errorf("was told that %d bytes were resumed, want %d", told, tt.resumed)
			}
			if got := reg.Count("POST", uploads); got != tt.posts {
				t.Errorf("got %d new sessions, want %d", got, tt.posts)
			}
			if left := files(t, opts.StateDir); len(left) != 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestResumeWhileTheRegistryIsBusy: it first tells too little, as one does that
// still stores what a killed process had sent; asked again, it says the truth,
// and that is more than this process has sent.
func TestResumeWhileTheRegistryIsBusy(t *testing.T) {
	blob := random(1, 48<<20)
	reg := registrytest.New(t, registrytest.Config{})
	opts := Options{StateDir: t.TempDir()}
	halfway(t, reg, opts, blob)
	reg.Break(registrytest.Fault{Methods: "GET", Path: uploads, Effect: registrytest.Answer(204, "", "Range", "0-1048575")})
	reg.Break(put(registrytest.Answer(416, "")))
	reg.Forget()
	if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if got := lengths(reg, "PUT"); got != "47 24" || reg.Count("POST", uploads) != 0 {
		t.Errorf("got PUTs of %q MiB and %d new sessions, want the second to go on behind what was there", got, reg.Count("POST", uploads))
	}
}

// TestResumeOfAll: where nothing is left to be sent, what was sent is judged all the
// same, whatever the source is by then: the blob is what its digest says.
func TestResumeOfAll(t *testing.T) {
	good := random(1, 8<<20)
	wrong := bytes.Clone(good)
	wrong[1]++
	desc := describeBytes(good)
	for name, source := range map[string][]byte{"right": good, "wrong": wrong} {
		reg := registrytest.New(t, registrytest.Config{})
		opts := Options{StateDir: t.TempDir()}
		if !pushUntil(t, reg, opts, good, int64(len(good)), layout.Watch{}) {
			t.Fatal("the client was not killed")
		}
		err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(desc, opener(source)), layout.Watch{})
		_, ok := reg.Blob("org/m", desc.Digest)
		if in, _ := reg.Bytes("PUT", uploads); err != nil || !ok || in != desc.Size {
			t.Errorf("%s: got %v, stored %v, %d bytes came in", name, err, ok, in)
		}
		if left := files(t, opts.StateDir); len(left) != 0 || reg.Uploads() != 0 {
			t.Errorf("%s: %q and %d uploads are left", name, left, reg.Uploads())
		}
	}
}

// TestResumeOfWrongBytes: what an earlier run sent may have been wrong, and so may
// be what this one reads behind the place where it goes on. What it would read
// before, the registry has.
func TestResumeOfWrongBytes(t *testing.T) {
	good := random(1, 8<<20)
	wrong := bytes.Clone(good)
	wrong[1]++
	desc := describeBytes(good)
	run := func(first, second []byte) (*registrytest.Registry, error) {
		reg := registrytest.New(t, registrytest.Config{})
		opts := Options{StateDir: t.TempDir()}
		ctx, kill := context.WithCancel(t.Context())
		reg.Break(put(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			req.Body = &fuse{ReadCloser: req.Body, left: 4 << 20, kill: kill}
			next.ServeHTTP(w, req)
		}))
		if err := dial(t, reg, "org/m", opts).Push(ctx, layer(desc, opener(first)), layout.Watch{}); err == nil {
			t.Fatal("the client was not killed")
		}
		return reg, dial(t, reg, "org/m", opts).Push(t.Context(), layer(desc, opener(second)), layout.Watch{})
	}
	reg, err := run(wrong, good)
	if got, ok := reg.Blob("org/m", desc.Digest); err != nil || !ok || !bytes.Equal(got, good) {
		t.Errorf("wrong bytes first: %v, stored %v", err, ok)
	}
	reg, err = run(good, wrong)
	if got, ok := reg.Blob("org/m", desc.Digest); err != nil || !ok || !bytes.Equal(got, good) {
		t.Errorf("wrong bytes that were sent before: %v, stored %v", err, ok)
	}
	wrong[1], wrong[len(wrong)-1] = good[1], wrong[len(wrong)-1]+1
	reg, err = run(good, wrong)
	if _, ok := reg.Blob("org/m", desc.Digest); !errors.Is(err, layout.ErrDigest) || ok || reg.Uploads() != 0 {
		t.Errorf("wrong bytes then: %v, stored %v, %d uploads left", err, ok, reg.Uploads())
	}
}

// TestResumeReadsLittleAgain: a source that is far away is not read a second time
// for what the registry has.
func TestResumeReadsLittleAgain(t *testing.T) {
	blob := random(1, 64<<20)
	reg := registrytest.New(t, registrytest.Config{})
	opts := Options{StateDir: t.TempDir()}
	halfway(t, reg, opts, blob)
	var read atomic.Int64
	open := func(_ context.Context, off int64) (io.ReadCloser, error) {
		return io.NopCloser(io.TeeReader(bytes.NewReader(blob[off:]), countWriter{&read})), nil
	}
	if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(blob), open), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if n := read.Load(); n > 40<<20 {
		t.Errorf("read %d bytes of %d, of which half was sent before", n, len(blob))
	}
}

type countWriter struct{ n *atomic.Int64 }

func (w countWriter) Write(p []byte) (int, error) { w.n.Add(int64(len(p))); return len(p), nil }

// TestASourceThatGivesNoAnswer: what was sent of it stays where it is, for another
// run.
func TestASourceThatGivesNoAnswer(t *testing.T) {
	blob := random(1, 32<<20)
	reg := registrytest.New(t, registrytest.Config{})
	opts := Options{StateDir: t.TempDir()}
	open := opener(blob[:16<<20], httprange.GaveUp(8, errors.New("503")))
	if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(blob), open), layout.Watch{}); !errors.Is(err, httprange.ErrGaveUp) {
		t.Fatalf("got %v, want ErrGaveUp", err)
	}
	if reg.Uploads() != 1 || len(files(t, opts.StateDir)) != 1 {
		t.Fatalf("%d uploads and %q are left, want one", reg.Uploads(), files(t, opts.StateDir))
	}
	reg.Forget()
	if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if in, _ := reg.Bytes("PUT", uploads); in > 18<<20 {
		t.Errorf("%d bytes came in later, want what was missing", in)
	}
}
