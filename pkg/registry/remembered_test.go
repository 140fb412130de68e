package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

func TestStateFile(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"user": "secret"}}})
	opts := Options{StateDir: filepath.Join(t.TempDir(), "cache"), Credential: static("user", "secret")}
	name := halfway(t, reg, opts, random(1, 8<<20))
	for path, want := range map[string]os.FileMode{name: 0o600, filepath.Dir(name): 0o700 | os.ModeDir} {
		fi, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && fi.Mode() != want {
			t.Errorf("got the mode %v, %v, want %v", fi.Mode(), err, want)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil || len(b) > maxStateBytes || strings.Contains(string(b), "secret") {
		t.Errorf("got %q, %v", b, err)
	}
	if strings.ContainsAny(filepath.Base(name), "/:@") || len(filepath.Base(name)) != 64 {
		t.Errorf("got the name %s", filepath.Base(name))
	}
	for what, n := range map[string]int{"small": minStateSize - 1, "large": minStateSize} {
		opts.StateDir = t.TempDir()
		seen := 0
		repo := dial(t, reg, "org/m", opts)
		blob := random(2, n)
		if err := repo.Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{Moved: func(int64) { seen = len(files(t, opts.StateDir)) }}); err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"large": 1}[what]; seen != want {
			t.Errorf("%s: got %d state files, want %d", what, seen, want)
		}
		if left := files(t, opts.StateDir); len(left) != 0 {
			t.Errorf("%s: %q is left", what, left)
		}
	}
}

// TestFailuresThatAreRemembered: an upload that the network ended goes on another
// time, one that can't be right does not.
func TestFailuresThatAreRemembered(t *testing.T) {
	blob := random(1, 8<<20)
	wrong := bytes.Clone(blob)
	wrong[len(wrong)-1]++
	cut := put(registrytest.CutIn(1 << 20))
	cut.Times = 1
	answer := func(status int, headers ...string) *registrytest.Fault {
		return &registrytest.Fault{Methods: "PUT", After: 1, Times: -1, Effect: registrytest.Answer(status, "", headers...)}
	}
	for name, tt := range map[string]struct {
		fault *registrytest.Fault
		open  layout.Opener
		left  int
	}{
		"cut for ever":      {fault: &registrytest.Fault{Methods: "PUT", After: 1, Times: -1, Effect: registrytest.CutIn(0)}, left: 1},
		"503 for ever":      {fault: answer(503), left: 1},
		"429, for too long": {fault: answer(429, "Retry-After", "100000"), left: 1},
		"logged out":        {fault: answer(401), left: 1},
		"denied":            {fault: answer(403), left: 1},
		"wrong bytes":       {open: opener(wrong)},
		"a broken source":   {open: opener(blob[:2<<20], errors.New("disk"))},
		"refused":           {fault: answer(400), left: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{})
			opts := Options{StateDir: t.TempDir()}
			first := cut
			reg.Break(first)
			if tt.fault != nil {
				tt.fault.After = 0
				reg.Break(*tt.fault)
			}
			open := tt.open
			if open == nil {
				open = opener(blob)
			}
			if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(blob), open), layout.Watch{}); err == nil {
				t.Fatal("got no error")
			}
			if got := len(files(t, opts.StateDir)); got != tt.left {
				t.Errorf("%d uploads are remembered, want %d", got, tt.left)
			}
			if got := reg.Uploads(); got != tt.left {
				t.Errorf("%d uploads are left open, want %d", got, tt.left)
			}
			if tt.left == 0 {
				return
			}
			reg.Mend()
			reg.Forget()
			if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
				t.Fatal(err)
			}
			if in, _ := reg.Bytes("PUT", uploads); in != 7<<20 {
				t.Errorf("%d bytes came in later, want %d", in, 7<<20)
			}
		})
	}
}

// TestPushersAtOnce: several clients push one blob at one time, with one state
// folder. Each completes it, and none spoils what another sends.
func TestPushersAtOnce(t *testing.T) {
	blob := random(1, 12<<20)
	desc := describeBytes(blob)
	reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NewLocation: true}})
	opts := Options{StateDir: t.TempDir()}
	halfway(t, reg, opts, blob)
	reg.Forget()
	var wg sync.WaitGroup
	meet := make(chan struct{})
	var resumed atomic32
	for i := range 6 {
		repo := dial(t, reg, "org/m", opts)
		w := layout.Watch{Resumed: func(n int64) {
			if n > 0 {
				resumed.add()
			}
		}}
		open := opener(blob)
		wg.Go(func() {
			err := repo.Push(t.Context(), layer(desc, func(ctx context.Context, off int64) (io.ReadCloser, error) {
				if i == 0 {
					close(meet) // nobody ends before the last has begun
				}
				<-meet
				return open(ctx, off)
			}), w)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, ok := reg.Blob("org/m", desc.Digest); !ok || !bytes.Equal(got, blob) {
		t.Error("the registry has other bytes than were pushed")
	}
	if reg.Uploads() != 0 || len(files(t, opts.StateDir)) != 0 {
		t.Errorf("%d uploads and the state %q are left", reg.Uploads(), files(t, opts.StateDir))
	}
	if resumed.get() != 1 {
		t.Errorf("%d pushers went on with the one upload", resumed.get())
	}
	for _, rec := range reg.Requests() {
		if rec.Method == http.MethodPut && rec.Status != http.StatusCreated {
			t.Errorf("a PUT was answered with %d", rec.Status)
		}
	}
}

// TestMountedSessionIsDropped: of an upload that an earlier run began and one that
// a mount has opened, one is enough.
func TestMountedSessionIsDropped(t *testing.T) {
	blob := random(1, 8<<20)
	reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NoMount: true}})
	opts := Options{StateDir: t.TempDir()}
	halfway(t, reg, opts, blob)
	repo := dial(t, reg, "org/m", opts)
	desc := reg.AddBlob("other/m", blob)
	if ok, err := repo.Mount(t.Context(), desc, layout.Origin{Registry: reg.Host, Repository: "other/m"}); ok || err != nil {
		t.Fatal(ok, err)
	}
	reg.Forget()
	if err := repo.Push(t.Context(), layer(desc, opener(blob)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if in, _ := reg.Bytes("PUT", uploads); in != 4<<20 || reg.Uploads() != 0 {
		t.Errorf("%d bytes came in, %d uploads are left open", in, reg.Uploads())
	}
}

// TestOtherPlaces: an upload is its registry's, repository's and blob's own.
func TestOtherPlaces(t *testing.T) {
	blob := random(1, 8<<20)
	reg := registrytest.New(t, registrytest.Config{})
	opts := Options{StateDir: t.TempDir(), Policy: quick}
	halfway(t, reg, opts, blob)
	other := random(2, 8<<20)
	if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(other), opener(other)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if err := dial(t, reg, "org/other", opts).Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := reg.Blob("org/m", describeBytes(blob).Digest); ok || reg.Uploads() != 1 || len(files(t, opts.StateDir)) != 1 {
		t.Errorf("the upload was touched: %v, %d uploads, %q", ok, reg.Uploads(), files(t, opts.StateDir))
	}
}
