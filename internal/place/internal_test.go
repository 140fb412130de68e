package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// replacing returns a folder that is to take the place of another one, on a
// system that can't swap them.
func replacing(t *testing.T) (*Folder, string) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "m/f", "old")
	d, err := CreateFolder(filepath.Join(dir, "m"), Options{Replace: true, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Discard() })
	d.inSteps = true
	if err := d.MayReplace(func(fs.FS) func(string, bool) bool { return func(p string, _ bool) bool { return p == "f" } }); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "m.partial/f", "new")
	return d, dir
}

func TestReplaceInSteps(t *testing.T) {
	d, dir := replacing(t)
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, dir, "m/f", "new")
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestReplaceInStepsWithAFolderInTheWay(t *testing.T) {
	d, dir := replacing(t)
	writeFile(t, dir, "m.partial.old/f", "mine")
	if err := d.Commit(); err == nil || !strings.Contains(err.Error(), "m.partial.old was not made by carton-oci") {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := d.Discard(); err != nil {
		t.Error(err)
	}
	wantFile(t, dir, "m/f", "old")
	wantFile(t, dir, "m.partial.old/f", "mine")
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestReplaceInStepsGivesAFolderBack(t *testing.T) {
	d, dir := replacing(t)
	writeFile(t, dir, "m/notes", "mine")
	if err := d.Commit(); !errors.Is(err, ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	wantFile(t, dir, "m/notes", "mine")
	wantFile(t, dir, "m.partial/f", "new")
}

// A process that is killed in the middle leaves the old folder aside.
func TestOldFolderIsRestored(t *testing.T) {
	d, dir := replacing(t)
	old, err := d.look("m")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.mark(old.id, waiting); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "m"), filepath.Join(dir, "m.partial.old")); err != nil {
		t.Fatal(err)
	}
	die(d)
	if _, err := CreateFolder(filepath.Join(dir, "m"), Options{Resume: true}); !errors.Is(err, ErrExist) {
		t.Errorf("got %v, want ErrExist for the restored folder", err)
	}
	wantFile(t, dir, "m/f", "old")
	wantFile(t, dir, "m.partial/f", "new")
}

// A process that waits between opening and locking may find that the file is gone
// meanwhile, or its name another file's.
func TestLockOfAFileThatLostItsName(t *testing.T) {
	for _, again := range []bool{false, true} {
		root, dir := newRoot(t)
		writeFile(t, dir, "m.partial.journal", journalMark)
		f, err := openOwn(root, "m.partial.journal")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if err := os.Remove(filepath.Join(dir, "m.partial.journal")); err != nil {
			t.Fatal(err)
		}
		if again {
			writeFile(t, dir, "m.partial.journal", "of a third process")
		}
		if err := lockNamed(root, "m.partial.journal", f); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("name taken again %v: got %v, want fs.ErrNotExist", again, err)
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

// A disk that can't be read for a while takes nobody's folder away: who comes later
// finds it, and that it is ours.
func TestAnUnreadableJournalStays(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	d, err := CreateFolder(name, Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "m.partial/f", "arrived")
	if kept, err := d.Keep(); !kept || err != nil {
		t.Fatalf("kept %v, %v", kept, err)
	}

	o, err := newOutput(name, Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.lock(); err != nil {
		t.Fatal(err)
	}
	o.journal.Close() // reading fails from here
	if err := o.readJournal(); err == nil {
		t.Fatal("the journal could be read")
	}
	o.abandon()

	d, err = CreateFolder(name, Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if !d.Stale() {
		t.Error("the folder that was left is not taken over")
	}
	wantFile(t, dir, "m.partial/f", "arrived")
}
