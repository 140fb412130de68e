package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// program is a run of carton-oci that is still going.
type program struct {
	*exec.Cmd
	stderr bytes.Buffer
}

func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	if runtime.GOOS == "windows" {
		testenv.NotChecked(t, "a test can't send Ctrl-C on Windows")
	}
	p := &program{Cmd: exec.Command("carton-oci", args...)}
	p.Dir, p.Stderr = dir, &p.stderr
	p.Env = append(os.Environ(), "HOME="+t.TempDir(), "NO_PROXY=*", "GORACE="+noSleep)
	return p
}

// withinAll is a time that no machine needs, however busy it is.
const withinAll = 2 * time.Minute

// end waits for the end, and wants it withinAll.
func (p *program) end(t *testing.T) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Wait() // the exit code is looked at
	}()
	select {
	case <-done:
	case <-time.After(withinAll):
		_ = p.Process.Kill()
		<-done
		t.Fatalf("did not end; standard error: %s", p.stderr.String())
	}
	return p.ProcessState.ExitCode()
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(withinAll); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// writeCarton writes a carton with one member of a size, and returns that one's
// digest.
func writeCarton(t *testing.T, name string, size int) digest.Digest {
	t.Helper()
	content := bytes.Repeat([]byte("x"), size)
	src := cartontest.New(map[string][]byte{"model/big.bin": content}, nil)
	if err := carton.Assemble(context.Background(), name, src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	return digest.FromBytes(content)
}

func TestAnInterruptCleansUp(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	dir := t.TempDir()
	weights := writeCarton(t, filepath.Join(dir, "m.carton"), 1<<20)
	push := start(t, dir, "push", "-q", "m.carton", r.Host+"/m:1")
	if err := push.Start(); err != nil {
		t.Fatal(err)
	}
	if code := push.end(t); code != 0 {
		t.Fatalf("push: exit code %d: %s", code, push.stderr.String())
	}
	for _, sig := range []os.Signal{os.Interrupt, terminate} {
		r.Break(registrytest.Fault{Methods: "GET", Path: "/blobs/" + weights.String(), Times: -1, Effect: r.StallOut(1 << 10)})
		r.Forget()
		out := t.TempDir()
		pull := start(t, out, "pull", "--no-progress", r.Host+"/m:1")
		if err := pull.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a partial file", func() bool {
			entries, err := os.ReadDir(out)
			return err == nil && len(entries) > 0
		})
		if err := pull.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := pull.end(t); code != exitInterrupted {
			t.Errorf("%v: got the exit code %d, want %d", sig, code, exitInterrupted)
		}
		if got, want := pull.stderr.String(), "carton-oci: interrupted\n"; got != want {
			t.Errorf("%v: standard error: got %q, want %q", sig, got, want)
		}
		if entries, _ := os.ReadDir(out); len(entries) != 0 {
			t.Errorf("%v: got %v left, want nothing", sig, entries)
		}
		r.Mend()
	}
}

// Nobody types the password, and thinks better of it.
func TestAnInterruptEndsAQuestion(t *testing.T) {
	for _, line := range [][]string{
		{"login", "127.0.0.1:1", "-u", "ann", "--password-stdin"},
		{"verify", "m.carton", "--key", "-"},
	} {
		t.Run(line[0], func(t *testing.T) { interruptAQuestion(t, line) })
	}
}

func interruptAQuestion(t *testing.T, line []string) {
	for wait := 200 * time.Millisecond; ; wait *= 4 {
		asking := start(t, t.TempDir(), line...)
		stdin, err := asking.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stdin.Close() })
		if err := asking.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait) // there is nothing to see of a program that waits
		if err := asking.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		switch code := asking.end(t); {
		case code == exitInterrupted:
			return
		case code != killed || wait > 10*time.Second: // killed: it had not come to its first line
			t.Fatalf("got the exit code %d, want %d: %s", code, exitInterrupted, asking.stderr.String())
		}
	}
}

// killed is the exit code of what a signal has ended.
const killed = -1

// A program that can't clean up, here because nobody reads what it writes, is
// ended by the second signal.
func TestASecondInterruptEndsAtOnce(t *testing.T) {
	dir := t.TempDir()
	writeCarton(t, filepath.Join(dir, "m.carton"), 8<<20) // more than a pipe holds
	cat := start(t, dir, "cat", "m.carton", "model/big.bin")
	pipe, err := cat.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	var one [1]byte
	if _, err := pipe.Read(one[:]); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() {
		_, _ = cat.Process.Wait()
		ended <- 1
	}()
	signals := 0
	for {
		if err := cat.Process.Signal(os.Interrupt); err == nil {
			signals++
		}
		select {
		case <-ended:
			if signals < 2 {
				t.Errorf("ended after %d signals, want 2: is it still writing?", signals)
			}
			return
		case <-time.After(300 * time.Millisecond):
			if signals > 50 {
				_ = cat.Process.Kill()
				t.Fatal("did not end")
			}
		}
	}
}
