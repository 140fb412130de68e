package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// cartonOCI is the command under test, as go install builds it, and the tests were:
// with -trimpath all of it, and of the standard library, would be compiled again.
var cartonOCI string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "carton-oci-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cartonOCI = filepath.Join(dir, "carton-oci")
	build := exec.Command("go", "build", "-o", cartonOCI, "./cmd/carton-oci")
	build.Dir = testenv.Root()
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
