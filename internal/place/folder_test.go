package place_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// putFolder makes a folder of one file through the package.
func putFolder(name, content string, opts place.Options) error {
	d, err := place.CreateFolder(name, opts)
	if err != nil {
		return err
	}
	defer d.Discard()
	if err := d.MayReplace(all); err != nil {
		return err
	}
	if err := fill(d, "f", content); err != nil {
		return err
	}
	return d.Commit()
}

func TestFolderAppearsWholeAndAlone(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	d, err := place.CreateFolder(name+"/", place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(d, "f", "x"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, filepath.Join(dir, "m.partial"), "f=x")
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := d.Discard(); err != nil {
		t.Error(err)
	}
	wantTree(t, dir, "m/", "m/f=x")
}

func TestDiscardedFolderLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	d, err := place.CreateFolder(filepath.Join(dir, "m"), place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"a", "a/b"} {
		if err := d.Mkdir(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := fill(d, "a/b/c", "x"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Discard(); err != nil {
			t.Error(err)
		}
	}
	wantTree(t, dir)
}

func TestExistingFolder(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := putFolder(name, "1", place.Options{}); err != nil {
		t.Fatalf("an empty folder: %v", err)
	}
	wantTree(t, dir, "m/", "m/f=1")

	write(t, filepath.Join(name, "extra"), "extra")
	err := putFolder(name, "2", place.Options{})
	if !errors.Is(err, place.ErrExist) || len(hint.Of(err)) == 0 {
		t.Errorf("got %v, want ErrExist with a hint", err)
	}
	wantTree(t, dir, "m/", "m/extra=extra", "m/f=1")

	if err := putFolder(name, "2", place.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "m/", "m/f=2")
}

func TestFolderThatAppearsMeanwhileStays(t *testing.T) {
	for _, what := range []string{"folder", "file", "symlink"} {
		dir := t.TempDir()
		name := filepath.Join(dir, "m")
		d, err := place.CreateFolder(name, place.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Discard() })
		want := "m=else"
		switch what {
		case "folder":
			write(t, filepath.Join(name, "else"), "else")
			want = "m/\nm/else=else"
		case "file":
			write(t, name, "else")
		case "symlink":
			want = "m -> " + dir
			testenv.Symlink(t, dir, name)
		}
		if err := d.Commit(); !errors.Is(err, place.ErrExist) && !errors.Is(err, place.ErrSymlink) {
			t.Errorf("%s: got %v, want ErrExist or ErrSymlink", what, err)
		}
		if err := d.Discard(); err != nil {
			t.Error(err)
		}
		wantTree(t, dir, strings.Split(want, "\n")...)
	}
}

func TestOutputThatIsNoFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	write(t, filepath.Join(dir, "real", "y"), "y")
	testenv.Symlink(t, "real", filepath.Join(dir, "link"))
	for name, want := range map[string]error{"file": place.ErrExist, "link": place.ErrSymlink} {
		err := putFolder(filepath.Join(dir, name), "new", place.Options{Replace: true})
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	wantTree(t, dir, "file=x", "link -> real", "real/", "real/y=y")
}

func TestFolderOfTheUserIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "home", "me", "precious"), "x")
	write(t, filepath.Join(dir, "work", "here", "precious"), "x")
	t.Setenv("HOME", filepath.Join(dir, "home", "me"))
	t.Setenv("USERPROFILE", filepath.Join(dir, "home", "me")) // its name on Windows
	t.Chdir(filepath.Join(dir, "work", "here"))
	for _, name := range []string{"home", "home/me", "work", "work/here"} {
		err := putFolder(filepath.Join(dir, name), "new", place.Options{Replace: true})
		if err == nil || !strings.Contains(err.Error(), "holds the") || len(hint.Of(err)) == 0 {
			t.Errorf("%s: got %v, want a refusal with a hint", name, err)
		}
	}
	if err := putFolder("sub", "x", place.Options{Replace: true}); err != nil {
		t.Errorf("a folder below it: %v", err)
	}
	wantTree(t, dir, "home/", "home/me/", "home/me/precious=x",
		"work/", "work/here/", "work/here/precious=x", "work/here/sub/", "work/here/sub/f=x")
}

func TestSecondWriterOfAFolderIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	other := holdElsewhere(t, "folder", name)
	if err := putFolder(name, "new", place.Options{}); !errors.Is(err, place.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	wantTree(t, filepath.Join(dir, "m.partial"), "other=other")
	other.end(t)
	wantTree(t, dir)
}

func TestPartialFolderOfADeadProcessIsRemoved(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "victim"), "victim")
	name := filepath.Join(dir, "m")
	holdElsewhere(t, "folder", name).kill(t)
	wantTree(t, filepath.Join(dir, "m.partial"), "other=other")
	testenv.Symlink(t, outside, filepath.Join(dir, "m.partial", "link"))
	if err := putFolder(name, "new", place.Options{}); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "m/", "m/f=new")
	wantTree(t, outside, "victim=victim")
}

func TestPartialFolderThatIsATrapIsNotUsed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	testenv.Symlink(t, outside, filepath.Join(dir, "m.partial"))
	err := putFolder(filepath.Join(dir, "m"), "new", place.Options{})
	if err == nil || !strings.Contains(err.Error(), "m.partial is a symlink") {
		t.Errorf("got %v, want a refusal", err)
	}
	wantTree(t, outside)
	wantTree(t, dir, "m.partial -> "+outside)
}

// Folders of the names that are needed on the way are somebody's, unless the
// lock's file says otherwise.
func TestFoldersOfOtherPeopleBesideAnOutput(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	write(t, filepath.Join(dir, "m.partial.old", "f"), "mine")
	if err := putFolder(name, "new", place.Options{}); err != nil {
		t.Error(err)
	}
	newer := "m/f=newer"
	switch err := putFolder(name, "newer", place.Options{Replace: true}); {
	case runtime.GOOS == "windows": // which can't swap two folders, and needs the name
		newer = "m/f=new"
		if err == nil || !strings.Contains(err.Error(), "m.partial.old was not made by carton-oci") {
			t.Errorf("got %v, want a refusal", err)
		}
	case err != nil:
		t.Error(err)
	}
	place.Tidy(name)
	wantTree(t, dir, "m.partial.old/", "m.partial.old/f=mine", "m/", newer)

	write(t, filepath.Join(dir, "m.partial", "f"), "mine")
	for _, resume := range []bool{false, true} {
		err := putFolder(name, "newest", place.Options{Replace: true, Resume: resume})
		if err == nil || !strings.Contains(err.Error(), "m.partial was not made by carton-oci") || len(hint.Of(err)) == 0 {
			t.Errorf("got %v, want a refusal with a hint", err)
		}
	}
	place.Tidy(name)
	wantTree(t, dir, "m.partial.old/", "m.partial.old/f=mine", "m.partial/", "m.partial/f=mine", "m/", newer)
}

// onlyF knows the file f and the folder sub.
func onlyF(fs.FS) func(string, bool) bool {
	return func(path string, folder bool) bool { return path == "f" && !folder || path == "sub" && folder }
}

func TestFolderWithStrangersIsNotReplaced(t *testing.T) {
	for _, stranger := range []string{"notes", "sub/notes", "other/f", "empty/", "f/x", "new\nline"} {
		if runtime.GOOS == "windows" && strings.Contains(stranger, "\n") {
			continue // it has no such names
		}
		dir := t.TempDir()
		name := filepath.Join(dir, "m")
		path := filepath.Join(name, filepath.FromSlash(stranger))
		if strings.HasSuffix(stranger, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			write(t, path, "mine")
		}
		before := tree(t, dir)
		d, err := place.CreateFolder(name, place.Options{Replace: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(); !errors.Is(err, place.ErrExist) {
			t.Errorf("%q, nobody asked: got %v, want ErrExist", stranger, err)
		}
		err = d.MayReplace(onlyF)
		if !errors.Is(err, place.ErrExist) || len(hint.Of(err)) == 0 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want ErrExist with a hint, in one line", stranger, err)
		}
		if again := place.CheckReplace(name, onlyF); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("%q: CheckReplace says %v", stranger, again)
		}
		if err := d.Discard(); err != nil {
			t.Error(err)
		}
		wantTree(t, dir, before...)
	}
}

// What comes into the old folder while the new one is made keeps it.
func TestStrangerThatComesMeanwhileStays(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	write(t, filepath.Join(name, "f"), "old")
	d, err := place.CreateFolder(name, place.Options{Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.MayReplace(onlyF), fill(d, "f", "new")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(name, "notes"), "mine")
	if err := d.Commit(); !errors.Is(err, place.ErrExist) || !strings.Contains(err.Error(), "notes") {
		t.Errorf("got %v, want ErrExist that names the file", err)
	}
	if err := d.Discard(); err != nil {
		t.Error(err)
	}
	wantTree(t, dir, "m/", "m/f=old", "m/notes=mine")
}

func TestPartialFolderThatIsSwappedIsNoOutput(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	d, err := place.CreateFolder(name, place.Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(d, "f", "x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".partial", filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(name+".partial", "f"), "evil")
	if err := d.Commit(); err == nil || !strings.Contains(err.Error(), "m.partial was swapped for something else") {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := d.Discard(); err != nil {
		t.Error(err)
	}
	wantTree(t, dir, "elsewhere/", "elsewhere/f=x", "m.partial/", "m.partial/f=evil")
}

func TestManyFilesAreSyncedToo(t *testing.T) {
	dir := t.TempDir()
	d, err := place.CreateFolder(filepath.Join(dir, "m"), place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := fill(d, fmt.Sprintf("f%d", i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := len(tree(t, filepath.Join(dir, "m"))); got != 200 {
		t.Errorf("got %d files, want 200", got)
	}
}

func TestNothingInAFolderIsMadeTwiceOrReachesOut(t *testing.T) {
	dir := t.TempDir()
	d, err := place.CreateFolder(filepath.Join(dir, "m"), place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if err := d.Mkdir("a"); err != nil {
		t.Fatal(err)
	}
	if err := fill(d, "a/f", "x"); err != nil {
		t.Fatal(err)
	}
	if err := d.Symlink("../..", "a/up"); err != nil {
		testenv.NotChecked(t, "no symlink can be made (%v)", err)
	}
	for _, c := range []struct {
		name string
		err  error
		kind error
		want string
	}{
		{"a folder twice", d.Mkdir("a"), fs.ErrExist, "m/a"},
		{"a file twice", fill(d, "a/f", "y"), fs.ErrExist, "m/a/f"},
		{"a file over a symlink", fill(d, "a/up", "y"), fs.ErrExist, "m/a/up"},
		{"a symlink twice", d.Symlink("f", "a/f"), fs.ErrExist, "m/a/f"},
		{"no folder", fill(d, "b/f", "y"), fs.ErrNotExist, "m/b/f"},
		{"through a symlink", fill(d, "a/up/f", "y"), nil, "m/a/up/f: path escapes from parent"},
		{"through ..", fill(d, "../f", "y"), nil, "f: path escapes from parent"},
	} {
		switch {
		case c.err == nil:
			t.Errorf("%s: got no error", c.name)
		case c.kind != nil && !errors.Is(c.err, c.kind):
			t.Errorf("%s: got %v, want %v", c.name, c.err, c.kind)
		case !strings.HasPrefix(c.err.Error()+": ", "create "+filepath.Join(dir, filepath.FromSlash(c.want))+": "):
			t.Errorf("%s: got %q, want it to name %q", c.name, c.err, c.want)
		}
	}
	wantTree(t, filepath.Join(dir, "m.partial"), "a/", "a/f=x", "a/up -> ../..")
}
