// Package program builds programs of other people from their modules, for tests
// that run them: once a version, into the user's cache folder.
package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// Set is programs of one module that are built together.
type Set struct {
	// Name tells the set from others of the same module, in names of folders.
	Name string
	// Module is the module's path, and Version its version.
	Module, Version string
	// Tags are those to build with.
	Tags []string
	// Packages are the import paths of the programs.
	Packages []string
	// C are programs in C, each of all *.c files of NAME/src in the module.
	C []string
}

// Build returns the folder that holds the programs, by the last part of their
// import path. What the cache folder doesn't hold yet is built. Where that can't
// be, the test is skipped, loudly.
func (s Set) Build(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "carton-oci-e2e", s.Name+"-"+s.Version)
	if s.isIn(dir) {
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
	if err := s.buildInto(work); err != nil {
		testenv.NotChecked(t, "%s %s can't be built here: %v", s.Name, s.Version, err)
	}
	if err := os.Rename(work, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	if !s.isIn(dir) {
		t.Fatalf("%s does not hold every program of %v", dir, s.Packages)
	}
	return dir
}

func (s Set) isIn(dir string) bool {
	return !slices.ContainsFunc(slices.Concat(s.Packages, s.C), func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, path.Base(name)))
		return err != nil
	})
}

// buildInto builds the programs in their module's own folder. go install would ask
// for the list of the module's versions, which a proxy may not have.
func (s Set) buildInto(dir string) error {
	out, err := run(dir, "go", "mod", "download", "-json", s.Module+"@"+s.Version)
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	// Without -trimpath: the standard library is compiled as it is for the tests.
	args := []string{"build", "-ldflags=-s -w", "-tags=" + strings.Join(s.Tags, ","), "-o", dir + "/"}
	if _, err := run(module.Dir, "go", append(args, s.Packages...)...); err != nil {
		return err
	}
	for _, name := range s.C {
		files, err := filepath.Glob(filepath.Join(module.Dir, name, "src", "*.c"))
		if err != nil {
			return err
		}
		if _, err := run(dir, "cc", append([]string{"-O2", "-o", name}, files...)...); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command in dir, and returns what it writes. The error has what it says.
func run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, args[0], err, &stderr)
	}
	return out, err
}
