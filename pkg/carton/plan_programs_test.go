package carton_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// What Plan lays out is a zip for everybody.
func TestOtherProgramsReadTheCanonicalCarton(t *testing.T) {
	testenv.Heavy(t)
	src := cartontest.New(planFiles(), planLinks())
	plan := planned(t, src)
	name := filepath.Join(t.TempDir(), "m.carton")
	if err := os.WriteFile(name, zipOfPlan(t, src, plan), 0o644); err != nil {
		t.Fatal(err)
	}
	n := plan.Len()
	t.Run("Go", func(t *testing.T) { goReads(t, name, n, "model/gewichte-ü/größe.txt", "ü") })
	t.Run("carton", func(t *testing.T) { cartonReads(t, name, n-1, "model/gewichte-ü/größe.txt", "ü") })
	t.Run("Python", func(t *testing.T) { pythonReads(t, name, n, "model/gewichte-ü/größe.txt", "ü", true) })
	t.Run("unzip", func(t *testing.T) { unzipReads(t, name, n, "model/.hidden/a=b", "equals", true) })
	t.Run("jar", func(t *testing.T) { jarReads(t, name, n, "model/.hidden/a=b", "equals") })
	t.Run("unzip makes symlinks and modes", func(t *testing.T) {
		dir := t.TempDir()
		run(t, testenv.Program(t, "unzip"), "-qq", name, "-d", dir)
		if got, err := os.Readlink(filepath.Join(dir, "model/.hidden/to")); err != nil || got != "../l" {
			t.Errorf("got a link to %q, %v, want ../l", got, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "model/.hidden/to")); err != nil || string(b) != "{}\n" {
			t.Errorf("through the links: got %q, %v", b, err)
		}
		if fi, err := os.Stat(filepath.Join(dir, "model/empty")); err != nil || fi.Mode() != 0o644 || fi.Size() != 0 {
			t.Errorf("got %v, %v, want an empty file with the mode 0644", fi, err)
		}
	})
}

// run returns what a program prints.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	// unzip shows names beyond ASCII as they are only in a UTF-8 locale.
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s%s", filepath.Base(program), err, out, stderr.String())
	}
	return string(out)
}
