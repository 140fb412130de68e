// Package program builds programs of other people from their modules, for tests
// that run them: once a version, into the user's cache folder.
package program

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
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
	// Version is the module's.
	Version string
	// Tags are those to build with.
	Tags []string
	// Packages are the import paths of the programs.
	Packages []string
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
	if out, err := s.install(work).CombinedOutput(); err != nil {
		testenv.NotChecked(t, "%s %s can't be built here: %v: %s", s.Name, s.Version, err, out)
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
	return !slices.ContainsFunc(s.Packages, func(path string) bool {
		_, err := os.Stat(filepath.Join(dir, filepath.Base(path)))
		return err != nil
	})
}

// install returns the command that builds the programs into dir.
func (s Set) install(dir string) *exec.Cmd {
	args := []string{"install", "-trimpath", "-ldflags=-s -w", "-tags=" + strings.Join(s.Tags, ",")}
	for _, path := range s.Packages {
		args = append(args, path+"@"+s.Version)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir // in no module: the programs' own says what they are built of
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	return cmd
}
