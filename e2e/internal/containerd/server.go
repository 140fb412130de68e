package containerd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/program"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

const (
	startTimeout = time.Minute // to answer; it takes a second
	stopTimeout  = time.Minute // to end after SIGTERM
)

// Server is a containerd that runs until its test ends.
type Server struct {
	// Socket is the path that it listens on.
	Socket string
	// Snapshotter is how it keeps extracted layers: overlayfs, or native where
	// the disk can't be under an overlay.
	Snapshotter string

	programs string
	dir      string
}

// Start builds containerd where it has not been built before, and runs it until
// the test ends. What config returns, in TOML, is added to its configuration.
func Start(t testing.TB, b program.Set, config ...func(*Server) string) *Server {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		testenv.NotChecked(t, "containerd needs Linux and root")
	}
	dir, err := os.MkdirTemp("", "ctrd") //nolint:usetesting // a socket's path is short, a test's folder is not
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{dir: dir, Socket: filepath.Join(dir, "sock")}
	t.Cleanup(func() { s.remove(t) })
	s.Snapshotter = snapshotter(t, dir)
	s.programs = b.Build(t)
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(s.config(config)), 0o600); err != nil {
		t.Fatal(err)
	}

	p := &process{cmd: exec.Command(filepath.Join(s.programs, "containerd"), "--config", path), ended: make(chan struct{})}
	p.cmd.Env = s.env()
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.wait()
	t.Cleanup(func() { p.stop(t) })
	s.waitUntilItAnswers(t, p)
	return s
}

// Dir is a folder that is removed, with what is mounted below it, when the test
// has ended.
func (s *Server) Dir() string { return s.dir }

func (s *Server) env() []string {
	return []string{"PATH=" + s.programs + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + os.TempDir()}
}

func (s *Server) config(more []func(*Server) string) string {
	q := func(name string) string { return strconv.Quote(filepath.Join(s.dir, name)) }
	lines := []string{
		"version = 4",
		"imports = []",
		"root = " + q("root"),
		"state = " + q("state"),
		`disabled_plugins = ["io.containerd.nri.v1.nri"]`,
		"[plugins.'io.containerd.server.v1.grpc']", "address = " + strconv.Quote(s.Socket),
		"[plugins.'io.containerd.server.v1.ttrpc']", "address = " + strconv.Quote(s.Socket+".ttrpc"),
		"[plugins.'io.containerd.internal.v1.opt']", "path = " + q("opt"),
		"[plugins.'io.containerd.shim.v1.manager']", "socket_dir = " + q("shims"),
		"[plugins.'io.containerd.image-verifier.v1.bindir']", "bin_dir = " + q("verifiers"),
	}
	for _, f := range more {
		lines = append(lines, f(s))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s *Server) waitUntilItAnswers(t testing.TB, p *process) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); ; {
		out, err := s.ctr("version").CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("containerd ended: %v\n%s", p.err, &p.log)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("containerd does not answer: %v: %s", err, out)
		}
	}
}

// process is containerd's, and what it says.
type process struct {
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
		t.Error("containerd does not end when it is told to")
	}
	if p.err != nil {
		t.Errorf("containerd: %v", p.err)
	}
	if t.Failed() {
		t.Logf("containerd said:\n%s", errorLines(p.log.String()))
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

// remove removes everything that containerd left, mounts first.
func (s *Server) remove(t testing.TB) {
	unmountBelow(t, s.dir)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Error(err)
	}
}
