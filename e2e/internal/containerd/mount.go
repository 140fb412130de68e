package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/daemon"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// snapshotter returns the one that works on the disk of dir. Where nothing can
// be mounted, root or not, the test is skipped, loudly.
func snapshotter(t testing.TB, dir string) string {
	t.Helper()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(filepath.Join(dir, "probe", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	probe := func(args ...string) (string, error) {
		cmd := exec.Command("mount", append(args, "merged")...)
		cmd.Dir = filepath.Join(dir, "probe")
		out, err := cmd.CombinedOutput()
		daemon.UnmountBelow(t, cmd.Dir)
		return string(out), err
	}
	if _, err := probe("-t", "overlay", "-o", "lowerdir=lower,upperdir=upper,workdir=work", "overlay"); err == nil {
		return "overlayfs"
	}
	if out, err := probe("--bind", "lower"); err != nil {
		testenv.NotChecked(t, "nothing can be mounted here: %v: %s", err, out)
	}
	return "native"
}
