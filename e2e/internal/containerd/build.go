package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// Version is the containerd that is built and run.
const Version = "v2.4.2"

const module = "github.com/containerd/containerd/v2/cmd/"

// Build is a set of programs of containerd, and what is compiled into them.
type Build struct {
	name     string
	tags     []string
	programs []string
}

// The builds. Leaving out what a test doesn't use halves the time of compiling.
var (
	// Light is containerd without the kubelet's interface, and ctr.
	Light = Build{
		name:     "light",
		tags:     []string{"no_btrfs", "no_cri", "no_devmapper", "no_tracing", "no_zfs"},
		programs: []string{"containerd", "ctr"},
	}
	// CRI is containerd as it runs below a kubelet, and the shim that starts runc.
	CRI = Build{
		name:     "cri",
		tags:     []string{"no_btrfs", "no_devmapper", "no_tracing", "no_zfs"},
		programs: []string{"containerd", "containerd-shim-runc-v2", "ctr"},
	}
)

// Programs returns the folder that holds the programs. They are built from their
// module where the user's cache folder doesn't hold them yet, once a version.
// Where that can't be, the test is skipped, loudly.
func (b Build) Programs(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "carton-oci-e2e", "containerd-"+Version+"-"+b.name)
	if b.isIn(dir) {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	// Another run of the tests may build at the same time; the first to be done
	// gives the folder its name.
	work, err := os.MkdirTemp(filepath.Dir(dir), "build") //nolint:usetesting // on the disk of its final place
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	if out, err := b.install(work).CombinedOutput(); err != nil {
		testenv.NotChecked(t, "containerd %s can't be built here: %v: %s", Version, err, out)
	}
	if err := os.Rename(work, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	if !b.isIn(dir) {
		t.Fatalf("%s: want the programs %v", dir, b.programs)
	}
	return dir
}

func (b Build) isIn(dir string) bool {
	return !slices.ContainsFunc(b.programs, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err != nil
	})
}

// install returns the command that builds the programs into dir.
func (b Build) install(dir string) *exec.Cmd {
	args := []string{"install", "-trimpath", "-ldflags=-s -w", "-tags=" + strings.Join(b.tags, ",")}
	for _, program := range b.programs {
		args = append(args, module+program+"@"+Version)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir // in no module
	// The runtime's own module says what it is built of, whatever flags say here.
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOBIN=%s", dir), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	return cmd
}
