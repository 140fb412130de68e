// Package testenv finds what tests need from outside the repository, and says
// loudly what was not checked where it is missing.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Foreign returns the path of a real file made by another program. Such files are
// not in the repository: they lie in ../shared/fixtures, or in the folder that
// $CARTON_OCI_FIXTURES names. What the project itself needs to be tested, it makes
// itself (internal/modeltest, internal/cartontest); foreign files only add to that.
// Where the file is missing the test is skipped, and internal/gotest counts it.
func Foreign(t testing.TB, name string) string {
	t.Helper()
	path, ok := foreign(name)
	if !ok {
		fmt.Fprintf(os.Stderr, "FOREIGN FILE: %s: %s is not here\n", t.Name(), name)
		t.Skipf("the foreign file %s is not here", name)
	}
	return path
}

func foreign(name string) (path string, ok bool) {
	dir := os.Getenv("CARTON_OCI_FIXTURES")
	if dir == "" {
		dir = filepath.Join(Root(), "..", "shared", "fixtures")
	}
	path = filepath.Join(dir, filepath.FromSlash(name))
	_, err := os.Stat(path)
	return path, err == nil
}

// Program returns the path of a program on PATH. Where there is none the test
// is skipped, loudly.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		NotChecked(t, "the program %s is not installed", name)
	}
	return path
}

// NotChecked skips the test and says so on standard error, in a line that
// .ci/run fails on.
func NotChecked(t testing.TB, format string, args ...any) {
	t.Helper()
	why := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") // one line
	fmt.Fprintf(os.Stderr, "NOT CHECKED: %s: %s\n", t.Name(), why)
	t.Skip(why)
}

// Heavy skips, with -short, a test that costs much. That is for processors that are
// emulated (make test-arch), and for the race detector, which makes tests five to ten
// times as dear: make test runs every test without it, and with -short what happens
// at once under it; make race runs all under it.
func Heavy(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("heavy, and left out with -short")
	}
}

// Few returns how often something is tried: n times, or with -short fewer: see
// Heavy.
func Few(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

// Checked says on standard error how many things a test tried that all went well,
// for tests that are about how many: internal/gotest prints it, and make chaos adds
// them up. It says nothing where the test has failed.
func Checked(t testing.TB, passed int, format string, args ...any) {
	t.Helper()
	if !t.Failed() {
		fmt.Fprintf(os.Stderr, "CHECKED: %s: %s: %d passed\n", t.Name(), fmt.Sprintf(format, args...), passed)
	}
}

// Root returns the repository's root.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Emulated skips the test, loudly, where err says that the test's own program can't be
// started as a second process: an emulator runs it, and the system knows nothing of that.
func Emulated(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, syscall.ENOEXEC) {
		NotChecked(t, "an emulated program starts none of its like (%v)", err)
	}
}
