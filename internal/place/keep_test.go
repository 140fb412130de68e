//go:build unix

package place_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
)

// noFiles runs f where no file can be opened any more than n.
func noFiles(t *testing.T, n int, f func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	free, err := os.Open("/dev/null") // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	next := int(free.Fd())
	free.Close()
	few := was
	few.Cur = uint64(next + n) //nolint:gosec // some tens
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// Where few files may be open, what an earlier run left is neither deleted nor
// damaged, whichever of them it is that can't be opened.
func TestNothingIsLostWhereNoFileCanBeOpened(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "m"), filepath.Join(dir, "d")
	keep(t, file, "half", half)
	d, err := place.CreateFolder(folder, place.Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	ferr := fill(d, "a", "half")
	_, werr := d.Journal().WriteAt([]byte(half), 0)
	if kept, err := d.Keep(); !kept || errors.Join(ferr, werr, err) != nil {
		t.Fatal(kept, ferr, werr, err)
	}
	want := tree(t, dir)
	if len(want) != 5 {
		t.Fatalf("%q is left, want five", want)
	}
	failed := 0
	for n := range 6 {
		noFiles(t, n, func() {
			if f, err := place.Create(file, place.Options{Resume: true}); err == nil {
				f.Keep()
			} else if failed++; strings.Contains(err.Error(), "was not made") {
				t.Errorf("%d files: %v", n, err)
			}
			if d, err := place.CreateFolder(folder, place.Options{Resume: true}); err == nil {
				d.Keep()
			} else if failed++; strings.Contains(err.Error(), "was not made") {
				t.Errorf("%d files: %v", n, err)
			}
		})
		wantTree(t, dir, want...)
	}
	if failed < 3 {
		t.Errorf("%d calls failed: the test tests nothing", failed)
	}
}

// A folder whose journal can't be made leaves nothing, and no file open.
func TestAFolderWithoutAJournalIsNotBegun(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	if err := errors.Join(os.Mkdir(name+".partial.journal", 0o700), os.WriteFile(name+".partial.journal/x", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	for range 5 {
		if _, err := place.CreateFolder(name, place.Options{Resume: true}); err == nil || !strings.Contains(err.Error(), "m.partial.journal was not made by carton-oci") {
			t.Errorf("got %v", err)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are open, %d were", after, before)
	}
	wantTree(t, dir, "m.partial.journal/", "m.partial.journal/x=")
}

func openFiles(t *testing.T) int {
	t.Helper()
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if list, err := os.ReadDir(dir); err == nil {
			return len(list)
		}
	}
	t.Fatal("no folder tells which files are open")
	return 0
}
