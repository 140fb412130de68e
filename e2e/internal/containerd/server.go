package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/daemon"
	"github.com/carton-oci/carton-oci/e2e/internal/lan"
	"github.com/carton-oci/carton-oci/e2e/internal/program"
	"github.com/carton-oci/carton-oci/internal/testenv"
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
	machine  *lan.Machine
}

// Start builds containerd where it has not been built before, and runs it until
// the test ends. What config returns, in TOML, is added to its configuration.
func Start(t testing.TB, b program.Set, config ...func(*Server) string) *Server {
	t.Helper()
	return StartOn(t, nil, b, config...)
}

// StartOn is Start on a machine. Disks all machines share.
func StartOn(t testing.TB, m *lan.Machine, b program.Set, config ...func(*Server) string) *Server {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		testenv.NotChecked(t, "containerd needs Linux and root")
	}
	dir := daemon.Dir(t, "ctrd")
	s := &Server{dir: dir, Socket: filepath.Join(dir, "sock"), machine: m}
	s.Snapshotter = snapshotter(t, dir)
	s.programs = b.Build(t)
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(s.config(config)), 0o600); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(filepath.Join(s.programs, "containerd"), "--config", path)
	cmd.Env = s.env()
	m.Do(func() {
		daemon.Start(t, cmd, func() error {
			_, err := s.Ctr("version")
			return err
		})
	})
	return s
}

// Dir is a folder that is removed, with what is mounted below it, when the test
// has ended.
func (s *Server) Dir() string { return s.dir }

func (s *Server) env() []string {
	return []string{
		"PATH=" + s.programs + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + s.dir,
		"TMPDIR=" + os.TempDir(),
	}
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
