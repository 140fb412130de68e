package place

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The folder that holds the output is moved while it is written, and another one
// gets its name.
func TestTheFolderOfTheOutputIsMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // an open folder keeps its name there
	}
	for _, another := range []bool{false, true} {
		dir := t.TempDir()
		out, moved := filepath.Join(dir, "out"), filepath.Join(dir, "moved")
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := Create(filepath.Join(out, "m"), Options{Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		d, err := CreateFolder(filepath.Join(out, "d"), Options{Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(out, moved); err != nil {
			t.Fatal(err)
		}
		if another {
			writeFile(t, dir, "out/other", "x")
		}
		for what, err := range map[string]error{"file": f.Commit(), "folder": d.Commit()} {
			if err == nil || !strings.Contains(err.Error(), "moved or removed meanwhile") {
				t.Errorf("%s: got %v, want that the folder was moved", what, err)
			}
		}
		wantFile(t, moved, "m", "")
		entries, err := os.ReadDir(moved)
		if err != nil || len(entries) != 2 {
			t.Errorf("got %v, %v, want m and d", entries, err)
		}
	}
}

// A partial that somebody has removed is not said to be there.
func TestAPartialThatIsGoneIsNotKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m")
	f, err := Create(name, Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name + ".partial"); err != nil {
		t.Fatal(err)
	}
	if kept, err := f.Keep(); kept || err != nil {
		t.Errorf("got %v, %v, want that nothing is kept", kept, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(name)); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
