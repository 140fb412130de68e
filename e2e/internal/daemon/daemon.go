// Package daemon runs a server of other people as a child process, with a folder of
// its own, until a test ends. What the server mounts below the folder is unmounted,
// and the folder removed.
package daemon

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = time.Minute // to answer; it takes a second
	stopTimeout  = time.Minute // to end after SIGTERM
)

// Dir makes a folder for a server. Its path is short, as a socket's must be. When
// the test has ended it is removed, with what is mounted below it.
func Dir(t testing.TB, prefix string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", prefix) //nolint:usetesting // a test's own folder has a long path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		UnmountBelow(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Start starts a server, and returns when it answers. When the test ends the server
// is told to end; where the test failed, what the server said is in its log.
func Start(t testing.TB, cmd *exec.Cmd, answers func() error) {
	t.Helper()
	p := &process{name: filepath.Base(cmd.Path), cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.wait()
	t.Cleanup(func() { p.stop(t) })
	for deadline := time.Now().Add(startTimeout); ; {
		err := answers()
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended: %v\n%s", p.name, p.err, &p.log)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", p.name, err)
		}
	}
}

// process is a server's, and what it says.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once it has ended
	log   bytes.Buffer
}

func (p *process) wait() {
	p.err = p.cmd.Wait()
	close(p.ended)
}

func (p *process) stop(t testing.TB) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
		t.Errorf("%s does not end when it is told to", p.name)
	}
	if p.err != nil {
		t.Errorf("%s: %v", p.name, p.err)
	}
	if t.Failed() {
		t.Logf("%s said:\n%s", p.name, errorLines(p.log.String()))
	}
}

// errorLines returns the lines of a log that are no mere information.
func errorLines(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "level=info") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// UnmountBelow unmounts everything at and below dir, the newest first.
func UnmountBelow(t testing.TB, dir string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
		return
	}
	var points []string
	for line := range strings.Lines(string(mounts)) {
		// ID, parent, device, root, mount point, ...
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4]+"/", dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	for _, point := range points {
		if out, err := exec.Command("umount", point).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", point, err, out)
		}
	}
}
