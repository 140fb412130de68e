package place_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

func TestFileAppearsWholeAndAlone(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m.carton")
	f, err := place.Create(name, place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(6); err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		off  int64
		text string
	}{{3, "def"}, {0, "abc"}} {
		if _, err := f.WriteAt([]byte(w.text), w.off); err != nil {
			t.Fatal(err)
		}
	}
	wantTree(t, dir, "m.carton.partial.journal=OURS", "m.carton.partial=abcdef")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "m.carton=abcdef")
	if err := f.Discard(); err != nil {
		t.Errorf("Discard after Commit: %v", err)
	}
	wantTree(t, dir, "m.carton=abcdef")
}

func TestDiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := place.Create(filepath.Join(dir, "m"), place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Discard(); err != nil {
			t.Error(err)
		}
	}
	wantTree(t, dir)
}

func TestExistingFileStays(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	write(t, name, "old")

	err := put(name, "new", place.Options{})
	if !errors.Is(err, place.ErrExist) {
		t.Fatalf("got %v, want ErrExist", err)
	}
	if got, want := err.Error(), name+": output exists already"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(hint.Of(err)) == 0 {
		t.Error("no hint what to do about it")
	}
	wantTree(t, dir, "m=old")

	if err := put(name, "new", place.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "m=new")
}

func TestFileThatAppearsMeanwhileStays(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	f, err := place.Create(name, place.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, "somebody else's")
	if err := f.Commit(); !errors.Is(err, place.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
	wantTree(t, dir, "m=somebody else's")
}

func TestOutputThatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "victim"), "victim")
	for name, target := range map[string]string{"link": "victim", "dangling": "nowhere"} {
		testenv.Symlink(t, target, filepath.Join(dir, name))
		for _, replace := range []bool{false, true} {
			err := put(filepath.Join(dir, name), "new", place.Options{Replace: replace})
			if !errors.Is(err, place.ErrSymlink) {
				t.Errorf("%s, replace %v: got %v, want ErrSymlink", name, replace, err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := put(filepath.Join(dir, "sub"), "new", place.Options{Replace: true})
	if !errors.Is(err, place.ErrExist) || !strings.Contains(err.Error(), "it is a folder, want a file") {
		t.Errorf("a folder: got %v", err)
	}
	wantTree(t, dir, "dangling -> nowhere", "link -> victim", "sub/", "victim=victim")
}

func TestNamesThatAreNone(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"", ".", "..", "/", "sub/", "a/.."} {
		if err := put(name, "x", place.Options{Replace: true}); err == nil {
			t.Errorf("%q: got no error", name)
		} else if len(hint.Of(err)) == 0 {
			t.Errorf("%q: %v: no hint", name, err)
		}
	}
	err := put("sub/m", "x", place.Options{})
	if !errors.Is(err, fs.ErrNotExist) || len(hint.Of(err)) == 0 {
		t.Errorf("no such folder: got %v, hints %q", err, hint.Of(err))
	}
	if got, want := fmt.Sprint(err), "create sub/m: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q and the system's words", got, want)
	}
	wantTree(t, ".")
}

func TestSecondWriterIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	other := holdElsewhere(t, "file", name)
	for _, replace := range []bool{false, true} {
		err := put(name, "new", place.Options{Replace: replace})
		if !errors.Is(err, place.ErrBusy) {
			t.Errorf("replace %v: got %v, want ErrBusy", replace, err)
		}
	}
	wantTree(t, dir, "m.partial.journal=OURS", "m.partial=of the other process, and longer than anything else")
	other.end(t)
	wantTree(t, dir)
	if err := put(name, "new", place.Options{}); err != nil {
		t.Error(err)
	}
	wantTree(t, dir, "m=new")
}

func TestPartialOfADeadProcessIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	holdElsewhere(t, "file", name).kill(t)
	wantTree(t, dir, "m.partial.journal=OURS", "m.partial=of the other process, and longer than anything else")
	if err := put(name, "new", place.Options{}); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "m=new")
}

func TestPartialThatIsATrapIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "victim"), "victim")
	testenv.Symlink(t, "victim", filepath.Join(dir, "a.partial"))
	err := put(filepath.Join(dir, "a"), "new", place.Options{})
	if err == nil || !strings.Contains(err.Error(), "a.partial is a symlink") || len(hint.Of(err)) == 0 {
		t.Errorf("a symlink: got %v", err)
	}

	// A process that was killed between giving a file its final name and removing
	// the other one leaves this.
	write(t, filepath.Join(dir, "b"), "old")
	if err := os.Link(filepath.Join(dir, "b"), filepath.Join(dir, "b.partial")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "b.partial.journal"), place.JournalMark)
	if err := put(filepath.Join(dir, "b"), "new", place.Options{Replace: true}); err != nil {
		t.Errorf("a second name of the output: %v", err)
	}
	// And this nobody but its owner.
	if err := os.Link(filepath.Join(dir, "victim"), filepath.Join(dir, "c.partial")); err != nil {
		t.Fatal(err)
	}
	if err := put(filepath.Join(dir, "c"), "new", place.Options{}); err == nil || !strings.Contains(err.Error(), "c.partial was not made by carton-oci") {
		t.Errorf("a second name of another file: got %v", err)
	}
	wantTree(t, dir, "a.partial -> victim", "b=new", "c.partial=victim", "victim=victim")
}

// Whoever may write to the folder can give NAME.partial to another file, before
// the rename.
func TestPartialThatIsSwappedIsNoOutput(t *testing.T) {
	for _, replace := range []bool{false, true} {
		dir := t.TempDir()
		name := filepath.Join(dir, "m")
		if replace {
			write(t, name, "old")
		}
		f, err := place.Create(name, place.Options{Replace: replace, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".partial", filepath.Join(dir, "elsewhere")); err != nil {
			t.Fatal(err)
		}
		write(t, name+".partial", "evil")
		if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "m.partial was swapped for something else") || len(hint.Of(err)) == 0 {
			t.Errorf("got %v, want a refusal with a hint", err)
		}
		if err := f.Discard(); err != nil {
			t.Error(err)
		}
		want := []string{"elsewhere=", "m.partial=evil"}
		if replace {
			want = append(want, "m=old")
		}
		wantTree(t, dir, want...)
	}
}

// What somebody has removed is not called somebody else's.
func TestPartialThatIsRemovedIsNoOutput(t *testing.T) {
	dir := t.TempDir()
	f, err := place.Create(filepath.Join(dir, "m"), place.Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "m.partial")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "m.partial was removed meanwhile") || len(hint.Of(err)) == 0 {
		t.Errorf("got %v, want a refusal with a hint", err)
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
	wantTree(t, dir)
}

func TestParentThatIsSwappedLeadsNowhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows renames no folder that somebody has open")
	}
	dir := t.TempDir()
	for _, d := range []string{"here", "evil"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f, err := place.Create(filepath.Join(dir, "here", "m"), place.Options{Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "here"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	testenv.Symlink(t, "evil", filepath.Join(dir, "here"))
	if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "moved or removed meanwhile") {
		t.Errorf("got %v, want that who looks for it will not find it", err)
	}
	wantTree(t, dir, "evil/", "here -> evil", "moved/", "moved/m=")
}

// Many writers of one name: whoever gets it writes all of it, and the name never
// shows anything but one writer's complete content.
func TestWritersNeverMix(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	var wg sync.WaitGroup
	var done sync.Map
	for w := range 8 {
		wg.Go(func() {
			text := strings.Repeat(fmt.Sprint(w), 1000)
			for range 50 {
				err := put(name, text, place.Options{Replace: true})
				if err == nil {
					done.Store(w, true)
				} else if !errors.Is(err, place.ErrBusy) {
					t.Errorf("got %v, want ErrBusy or none", err)
				}
				b, err := os.ReadFile(name)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if len(b) != 1000 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("the file holds %d bytes, or mixed ones", len(b))
				}
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(name + ".partial"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the partial is left behind: %v", err)
	}
	some := false
	done.Range(func(any, any) bool { some = true; return false })
	if !some {
		t.Error("no writer got through")
	}
}

// Many writers of one new name, none of which may replace it: one gets it, and
// the others leave no trace.
func TestOneWriterWins(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		name := filepath.Join(dir, "m")
		var wg sync.WaitGroup
		var mu sync.Mutex
		var winners []string
		for w := range 16 {
			wg.Go(func() {
				text := fmt.Sprint(w)
				err := put(name, text, place.Options{})
				switch {
				case err == nil:
					mu.Lock()
					winners = append(winners, text)
					mu.Unlock()
				case !errors.Is(err, place.ErrBusy) && !errors.Is(err, place.ErrExist):
					t.Errorf("got %v, want ErrBusy or ErrExist", err)
				}
			})
		}
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("the winners are %q, want one", winners)
		}
		wantTree(t, dir, "m="+winners[0])
	}
}
