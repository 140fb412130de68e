package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// die ends a Folder as SIGKILL does.
func die(d *Folder) { d.close() }

// A process is killed when the old folder has lost its name, and nobody has looked
// yet for what its user has put into it meanwhile.
func TestWhatCameIntoAReplacedFolderOutlivesAKill(t *testing.T) {
	for _, inSteps := range []bool{false, true} {
		d, dir := replacing(t)
		name := filepath.Join(dir, "m")
		writeFile(t, dir, "m/notes", "mine")
		old, err := d.look("m")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.mark(old.id, waiting); err != nil {
			t.Fatal(err)
		}
		if inSteps {
			err = d.moveAside("m.partial.old")
		} else {
			err = swap(d.dir, "m.partial", "m")
		}
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		die(d)
		Tidy(name)
		wantFile(t, dir, "m/f", "new")
		again, err := CreateFolder(name, Options{Replace: true, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		err = again.MayReplace(func(fs.FS) func(string, bool) bool { return func(p string, _ bool) bool { return p == "f" } })
		if !errors.Is(err, ErrExist) {
			t.Errorf("in steps %v: got %v, want ErrExist", inSteps, err)
		}
		if err := again.Discard(); err != nil {
			t.Error(err)
		}
		wantFile(t, dir, "m/notes", "mine")
		wantFile(t, dir, "m/f", "old")
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("in steps %v: left behind: %v", inSteps, entries)
		}
	}
}

// Who takes a folder over and fails at once, by a full disk or a kill, has not made
// the record of whose it is another one.
func TestTheRecordOfAFolderIsNeverEmpty(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	d, err := CreateFolder(name, Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "m.partial/f", "half")
	if kept, err := d.Keep(); !kept || err != nil {
		t.Fatal(kept, err)
	}
	journal := name + ".partial.journal"
	before, err := os.Stat(journal)
	if err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	again, err := CreateFolder(name, Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(journal)
	if err != nil {
		t.Fatal(err)
	}
	if !after.ModTime().Equal(before.ModTime()) {
		t.Error("a record that says all there is to say was written again")
	}
	// A shorter one is written over a longer one, without a moment in between.
	if err := errors.Join(again.mark("inode 17 of a folder that is gone", ours), again.mark("inode 17 of a folder that is gone", others)); err != nil {
		t.Fatal(err)
	}
	die(again)
	third, err := CreateFolder(name, Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	defer third.Discard()
	if !third.Stale() || len(third.journal.folders) != 1 {
		t.Errorf("taken over: %v; the journal knows %v; it was %q", third.Stale(), third.journal.folders, record)
	}
}

// A user removes what a killed process left, and makes a folder of that name. Many
// file systems give it the same inode.
func TestAFolderWithTheInodeOfOurs(t *testing.T) {
	again := 0
	for range 10 {
		dir := t.TempDir()
		name := filepath.Join(dir, "m")
		d, err := CreateFolder(name, Options{Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(name + ".partial")
		if err != nil {
			t.Fatal(err)
		}
		d.root.Close()
		die(d)
		if err := os.Remove(name + ".partial"); err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, "m.partial/notes", "mine")
		after, err := os.Stat(name + ".partial")
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		when, err := born(root, "m.partial")
		if err != nil {
			t.Fatal(err)
		}
		if inode(before) == inode(after) && when != "" {
			again++
			if _, err := CreateFolder(name, Options{Resume: true}); err == nil {
				t.Error("it was taken over")
			}
			wantFile(t, dir, "m.partial/notes", "mine")
		}
		root.Close()
	}
	t.Logf("%d of 10 had the same inode", again)
}

// A disk is full when the old folder has lost its name and was looked at: it gets its
// name back, and nothing of it is removed.
func TestAJournalThatCanNotBeWrittenRemovesNothing(t *testing.T) {
	for _, aside := range []string{"m.partial", "m.partial.old"} {
		d, dir := replacing(t)
		name := filepath.Join(dir, "m")
		old, err := d.look("m")
		if err == nil {
			err = d.mark(old.id, waiting)
		}
		if err == nil && aside == "m.partial" {
			err = swap(d.dir, "m.partial", "m")
		} else if err == nil {
			err = d.moveAside(aside)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		writable := d.journal.File
		if d.journal.File, err = os.Open(name + ".partial.journal"); err != nil {
			t.Fatal(err)
		}
		if err := d.removeOld(aside, old); err == nil {
			t.Fatal("the journal could be written")
		}
		if err := d.Discard(); err != nil {
			t.Error(err)
		}
		writable.Close()
		again, err := CreateFolder(name, Options{Replace: true, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		wantFile(t, dir, "m/f", "old")
		wantFile(t, dir, "m.partial/f", "new")
		if err := again.Discard(); err != nil {
			t.Error(err)
		}
	}
}
