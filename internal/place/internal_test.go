package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// The fallbacks of systems that can't rename without replacing, or swap.

func TestLinkNewReplacesNothing(t *testing.T) {
	root, dir := newRoot(t)
	writeFile(t, dir, "a", "new")
	writeFile(t, dir, "b", "old")
	if err := linkNew(root, "a", "b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	wantFile(t, dir, "b", "old")
	if err := linkNew(root, "a", "c"); err != nil {
		t.Error(err)
	}
	wantFile(t, dir, "c", "new")
	if _, err := os.Lstat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name is left: %v", err)
	}
}

func TestReplaceInSteps(t *testing.T) {
	root, dir := newRoot(t)
	o := &output{name: filepath.Join(dir, "m"), base: "m", parent: root, replace: true}
	writeFile(t, dir, "m/f", "old")
	writeFile(t, dir, "m.partial/f", "new")
	if err := o.replaceInSteps(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, dir, "m/f", "new")
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}

	// The second rename fails: the old folder comes back.
	if err := o.replaceInSteps(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is nothing to rename", err)
	}
	wantFile(t, dir, "m/f", "new")
}

// A process that waits between opening and locking may find that the file has
// become an output meanwhile, and its name another file's.
func TestLockOfAFileThatLostItsName(t *testing.T) {
	for _, again := range []bool{false, true} {
		root, dir := newRoot(t)
		o := &output{name: filepath.Join(dir, "m"), base: "m", parent: root}
		writeFile(t, dir, "m.partial", "done")
		f, err := o.openStale("m.partial")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if err := os.Rename(filepath.Join(dir, "m.partial"), filepath.Join(dir, "m")); err != nil {
			t.Fatal(err)
		}
		if again {
			writeFile(t, dir, "m.partial", "of a third process")
		}
		if ok, err := o.claim(&held{f, false, true}, "m.partial"); ok || err != nil {
			t.Errorf("name taken again %v: got %v, %v, want that the file is not used", again, ok, err)
		}
	}
}

func newRoot(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, dir, name, want string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil || string(b) != want {
		t.Errorf("%s: got %q, %v, want %q", name, b, err, want)
	}
}
