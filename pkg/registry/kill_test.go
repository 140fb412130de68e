package registry

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

const (
	childVariable = "CARTON_OCI_TEST_PUSH" // host, chunk size and state folder
	childSize     = 32 << 20
)

// TestPushChild is no test of its own: it is the process that TestKilledProcess
// kills.
func TestPushChild(t *testing.T) {
	what := os.Getenv(childVariable)
	if what == "" {
		return
	}
	var host, dir string
	var chunk int64
	if _, err := fmt.Sscanf(what, "%s %d %s", &host, &chunk, &dir); err != nil {
		t.Fatal(err)
	}
	repo := repositoryAt(t, host, "org/m", Options{Policy: quick, ChunkSize: chunk, StateDir: dir})
	blob := random(12, childSize)
	if err := repo.Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
}

// TestKilledProcess kills processes with SIGKILL while they push, at random
// points. The next goes on.
func TestKilledProcess(t *testing.T) {
	blob := random(12, childSize)
	desc := describeBytes(blob)
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NewLocation: true}})
		dir, chunk, most, whole := t.TempDir(), int64(0), int64(childSize/4), 0
		if seed%2 == 1 {
			chunk, most, whole = 1<<20, 1<<20, 8 // dies in one of the first nine chunks
		}
		for range 3 {
			child := exec.Command(os.Args[0], "-test.run=^TestPushChild$")
			child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", childVariable, reg.Host, chunk, dir))
			started := make(chan struct{})
			reg.Break(registrytest.Fault{
				Methods: "PUT|PATCH", Path: uploads, After: rng.IntN(whole + 1),
				Effect: killer(func() { <-started; _ = child.Process.Kill() }, rng.Int64N(most)),
			})
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			if child.Wait() == nil {
				t.Errorf("seed %d: the process was not killed", seed)
			}
			reg.Mend()
		}
		var resumed, sent int64
		w := layout.Watch{Resumed: func(n int64) { resumed = n }, Sent: func(n int64) { sent += n }}
		repo := dial(t, reg, "org/m", Options{StateDir: dir, ChunkSize: chunk})
		if err := repo.Push(t.Context(), layer(desc, opener(blob)), w); err != nil {
			t.Fatal(err)
		}
		if resumed == 0 || resumed+sent != childSize {
			t.Errorf("seed %d: %d bytes were there and %d were sent", seed, resumed, sent)
		}
		if got, ok := reg.Blob("org/m", desc.Digest); !ok || !bytes.Equal(got, blob) {
			t.Errorf("seed %d: the registry has other bytes than were pushed", seed)
		}
		if in, _ := reg.Bytes("PUT|PATCH", uploads); in > childSize+3<<20 {
			t.Errorf("seed %d: %d bytes came in, want %d and little more", seed, in, childSize)
		}
		if left := files(t, dir); len(left) != 0 {
			t.Errorf("seed %d: %q is left", seed, left)
		}
	}
}

// killer kills a process behind so many bytes of a request.
func killer(kill func(), after int64) registrytest.Effect {
	return func(_ http.ResponseWriter, req *http.Request, next http.Handler) {
		req.Body = &fuse{ReadCloser: req.Body, left: after, kill: kill}
		registrytest.Discard(next, req)
		_, _ = io.Copy(io.Discard, req.Body)
		panic(http.ErrAbortHandler)
	}
}
