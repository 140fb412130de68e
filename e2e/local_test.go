package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: whatever is wrong with the machine, a final name holds what it
// held before, or all of what is new.

// pushedModel is a small model in a registry, and the file that a pull makes.
func pushedModel(t *testing.T) (ref, sum string) {
	t.Helper()
	s := testregistry.Start(t, testregistry.Options{})
	u := newUser(t)
	sweptModel().write(t, u.path("m.carton"))
	ref = s.Host + "/org/m:1"
	u.must(t, "push", "m.carton", ref)
	u.must(t, "pull", ref, "-o", "out.carton")
	return ref, fileSum(t, u.path("out.carton"))
}

// shell runs the command behind a line of shell, which says exec "$@".
func (u *user) shell(t *testing.T, line string, args ...string) result {
	t.Helper()
	return u.exec(t, "/bin/sh", append([]string{"-c", line, "sh", cartonOCI}, args...)...)
}

func TestFileSizeLimit(t *testing.T) {
	ref, _ := pushedModel(t)
	for _, out := range [][]string{{"-o", "out.carton"}, {"--unpack", "out"}} {
		u := newUser(t)
		r := u.shell(t, `ulimit -f 1024; exec "$@"`, append([]string{"pull", ref}, out...)...)
		if r.code != failed || !strings.Contains(r.stderr, "file too large") || !strings.Contains(r.stderr, "ulimit -f") {
			t.Errorf("got exit code %d, want %d and what to do\n%s", r.code, failed, r.stderr)
		}
		if _, err := os.Lstat(u.path(out[1])); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want nothing there", out[1], err)
		}
	}
}

func TestFewFilesMayBeOpen(t *testing.T) {
	ref, want := pushedModel(t)
	u := newUser(t)
	r := u.shell(t, `ulimit -n 24; exec "$@"`, "pull", ref, "-o", "out.carton")
	if r.code != 0 || fileSum(t, u.path("out.carton")) != want {
		t.Errorf("got exit code %d\n%s", r.code, r.stderr)
	}
}

// Nothing is written but beside the output: there need be no other place.
func TestNoOtherPlaceForTemporaryFiles(t *testing.T) {
	ref, want := pushedModel(t)
	u := newUser(t).with("TMPDIR=/nonexistent", "HOME=/nonexistent", "XDG_CACHE_HOME=/nonexistent", "CARTON_OCI_CACHE=")
	u.must(t, "pull", ref, "-o", "out.carton")
	if got := fileSum(t, u.path("out.carton")); got != want {
		t.Errorf("got the sha256 %s, want %s", got, want)
	}
	u.must(t, "push", "out.carton", "oci:layout:1")
}

func TestFolderThatMayNotBeWritten(t *testing.T) {
	ref, _ := pushedModel(t)
	disk := testenv.SmallDisk(t, 8<<20)
	writeFile(t, filepath.Join(disk, "old.carton"), "old")
	if out, err := exec.Command("mount", "-o", "remount,ro", disk).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v: %s", err, out)
	}
	u := newUser(t)
	for _, args := range [][]string{
		{"pull", ref, "-o", filepath.Join(disk, "new.carton")},
		{"pull", "--force", ref, "-o", filepath.Join(disk, "old.carton")},
		{"pull", ref, "--unpack", filepath.Join(disk, "out")},
		{"push", ref, "oci:" + filepath.Join(disk, "layout") + ":1"},
	} {
		r := u.run(t, args...)
		if r.code != failed || !strings.Contains(r.stderr, "read-only file system") {
			t.Errorf("%v: got exit code %d\n%s", args, r.code, r.stderr)
		}
	}
	if got := readText(t, filepath.Join(disk, "old.carton")); got != "old" {
		t.Errorf("the old file holds %q", got)
	}
}

// A pull whose output nobody reads has made its file all the same.
func TestStandardOutputThatIsClosed(t *testing.T) {
	ref, want := pushedModel(t)
	// What is written to a closed file goes nowhere, not into the output: Go opens
	// the null device in its place.
	for line, code := range map[string]int{`exec "$@" >&-`: 0, `exec "$@" >/dev/full`: failed, `"$@" | :`: 0} {
		u := newUser(t)
		r := u.shell(t, line, "pull", ref, "-o", "out.carton", "--format", "json")
		if r.code != code || strings.Contains(r.stderr, "panic") || strings.Contains(r.stderr, "goroutine") {
			t.Errorf("%s: got exit code %d, want %d\n%s", line, r.code, code, r.stderr)
		}
		if got := fileSum(t, u.path("out.carton")); got != want {
			t.Errorf("%s: got the sha256 %s, want %s", line, got, want)
		}
	}
}
