package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		unmountBelow(t, cmd.Dir)
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

// unmountBelow unmounts everything at and below dir, the newest first.
func unmountBelow(t testing.TB, dir string) {
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
