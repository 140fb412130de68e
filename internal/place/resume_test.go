//go:build unix

package place_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// half is what a journal may hold.
const half = "carton-oci partial: what half"

// keep begins an output, writes to it and its journal, and leaves both.
func keep(t *testing.T, name, content, journal string) {
	t.Helper()
	f, err := place.Create(name, place.Options{Replace: true, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	_, werr := f.WriteAt([]byte(content), 0)
	_, jerr := f.Journal().WriteAt([]byte(journal), 0)
	kept, kerr := f.Keep()
	if err := errors.Join(werr, jerr, kerr); err != nil || !kept {
		t.Fatal(kept, err)
	}
}

// found says what the next process finds: the content and the journal of a stale
// file, "" and "" where it begins anew.
func found(t *testing.T, name string) (content, journal string) {
	t.Helper()
	f, err := place.Create(name, place.Options{Replace: true, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	b := make([]byte, 100)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	j, err := io.ReadAll(io.NewSectionReader(f.Journal(), 0, 100))
	if err != nil {
		t.Fatal(err)
	}
	if f.Stale() != (n > 0) {
		t.Errorf("%d bytes are there, and stale is %v", n, f.Stale())
	}
	return string(b[:n]), string(j)
}

func TestAKeptFileIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	keep(t, name, "half", half)
	wantTree(t, dir, "m.partial.journal=OURS"+half, "m.partial=half")
	if content, journal := found(t, name); content != "half" || journal != half {
		t.Errorf("got %q and %q", content, journal)
	}
	wantTree(t, dir)

	// Committed, it leaves no journal.
	keep(t, name, "half", half)
	f, err := place.Create(name, place.Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Partial(), name+".partial"; got != want {
		t.Errorf("got the name %s, want %s", got, want)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if kept, err := f.Keep(); kept || err != nil {
		t.Errorf("Keep after Commit: %v, %v", kept, err)
	}
	wantTree(t, dir, "m=half")
}

func TestWithoutResumeNothingIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	keep(t, name, "half", half)
	f, err := place.Create(name, place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Stale() || f.Journal() != nil {
		t.Error("it is stale, or has a journal")
	}
	wantTree(t, dir, "m.partial.journal=OURS", "m.partial=")
	if kept, err := f.Keep(); kept || err != nil {
		t.Errorf("Keep: got %v, %v, want that it is discarded", kept, err)
	}
	wantTree(t, dir)
}

// What somebody else could have a hand in is not used, and not written to.
func TestPartialsThatAreNotTakenOver(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a second name":            func(dir string) error { return os.Link(filepath.Join(dir, "m.partial"), filepath.Join(dir, "victim")) },
		"writable by the group":    func(dir string) error { return os.Chmod(filepath.Join(dir, "m.partial"), 0o620) },
		"writable by anybody":      func(dir string) error { return os.Chmod(filepath.Join(dir, "m.partial"), 0o602) },
		"gone, and a journal left": func(dir string) error { return os.Remove(filepath.Join(dir, "m.partial")) },
	} {
		dir := t.TempDir()
		out := filepath.Join(dir, "m")
		keep(t, out, "half", half)
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if content, journal := found(t, out); content != "" || journal != "" {
			t.Errorf("%s: got %q and %q, want a new file with a new journal", name, content, journal)
		}
		if name == "a second name" {
			wantTree(t, dir, "victim=half")
		}
	}
}

// A partial without a journal of ours beside it is somebody's file of that name,
// and so is a journal that is none: both stay as they are.
func TestPartialsWithoutOurJournalAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(journal, victim string) error{
		"a symlink":       func(j, victim string) error { return os.Symlink(victim, j) },
		"a second name":   func(j, victim string) error { return os.Link(victim, j) },
		"an empty folder": func(j, _ string) error { return os.Mkdir(j, 0o755) },
		"notes":           func(j, _ string) error { return os.WriteFile(j, []byte("my notes"), 0o600) },
		"gone":            func(string, string) error { return nil },
	} {
		for _, resume := range []bool{false, true} {
			dir := t.TempDir()
			out, victim := filepath.Join(dir, "m"), filepath.Join(dir, "victim")
			keep(t, out, "half", half)
			write(t, victim, "victim")
			journal := out + ".partial.journal"
			if err := errors.Join(os.Remove(journal), spoil(journal, victim)); err != nil {
				t.Fatal(err)
			}
			before := tree(t, dir)
			_, err := place.Create(out, place.Options{Resume: resume, Replace: true})
			what := "m.partial.journal"
			if name == "gone" {
				what = "m.partial"
			}
			if err == nil || !strings.Contains(err.Error(), what+" was not made by carton-oci") || len(hint.Of(err)) == 0 {
				t.Errorf("%s: got %v, want a refusal with a hint", name, err)
			}
			wantTree(t, dir, before...)
		}
	}
}

// Nor is a journal written to, or removed, that lies where a new one would.
func TestJournalThatIsNotOursIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.partial.journal"), "my notes")
	write(t, filepath.Join(dir, "d.partial.journal"), "my notes")
	before := tree(t, dir)
	for _, err := range []error{
		put(filepath.Join(dir, "m"), "x", place.Options{Resume: true}),
		put(filepath.Join(dir, "m"), "x", place.Options{}),
		putFolder(filepath.Join(dir, "d"), "x", place.Options{Resume: true}),
		putFolder(filepath.Join(dir, "d"), "x", place.Options{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "was not made by carton-oci") || len(hint.Of(err)) == 0 {
			t.Errorf("got %v, want a refusal with a hint", err)
		}
	}
	wantTree(t, dir, before...)
}

func TestAFullFolderInPlaceOfAJournal(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.partial.journal", "x"), "x")
	if _, err := place.Create(filepath.Join(dir, "m"), place.Options{Resume: true}); err == nil {
		t.Error("got no error")
	}
	wantTree(t, dir, "m.partial.journal/", "m.partial.journal/x=x")
}

func TestAKeptFolderIsTakenOver(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "victim"), "victim")
	name := filepath.Join(dir, "m")
	opts := place.Options{Replace: true, Resume: true}
	d, err := place.CreateFolder(name, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"a", "a/b", "empty", "empty/er"} {
		if err := d.Mkdir(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"a/b/keep", "a/b/drop", "a/linked", "top", "loose"} {
		if err := fill(d, p, p); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := d.Keep(); !kept || err != nil {
		t.Fatal(kept, err)
	}
	partial := name + ".partial"
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(partial, "a", "way out")),
		os.Symlink(filepath.Join(outside, "victim"), filepath.Join(partial, "named")),
		os.Link(filepath.Join(partial, "a", "linked"), filepath.Join(outside, "other name")),
		os.Chmod(filepath.Join(partial, "loose"), 0o666),
	); err != nil {
		t.Fatal(err)
	}

	if d, err = place.CreateFolder(name, opts); err != nil {
		t.Fatal(err)
	}
	if !d.Stale() || d.Partial() != partial {
		t.Errorf("stale %v, name %s", d.Stale(), d.Partial())
	}
	err = d.Prune(func(path string) bool { return path != "a/b/drop" })
	if err != nil {
		t.Fatal(err)
	}
	wantTree(t, partial, "a/", "a/b/", "a/b/keep=a/b/keep", "top=top")
	wantTree(t, outside, "other name=a/linked", "victim=victim")

	for _, p := range []string{"a", "a/b", "new"} {
		if err := d.Mkdir(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if err := d.Mkdir("top"); err == nil {
		t.Error("a folder over a file: got no error")
	}
	f, err := d.Create("a/b/keep")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if f.Close(); string(b) != "a/b/keep" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	// What came to be there since is not used.
	if err := os.Symlink(filepath.Join(outside, "victim"), filepath.Join(partial, "later")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create("later"); err == nil {
		t.Error("a symlink was opened")
	}
	if err := os.Remove(filepath.Join(partial, "later")); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "m/", "m/a/", "m/a/b/", "m/a/b/keep=a/b/keep", "m/new/", "m/top=top")
}

// A killed process leaves as much as one that keeps it.
func TestAKilledFolderIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	holdElsewhere(t, "folder", name).kill(t)
	d, err := place.CreateFolder(name, place.Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Stale() {
		t.Error("it is not stale")
	}
	wantTree(t, filepath.Join(dir, "m.partial"), "other=other")
	if err := d.Discard(); err != nil {
		t.Error(err)
	}
	wantTree(t, dir)
}
