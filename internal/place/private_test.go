package place_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

func TestPrivateDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c", "d")
	open := func(dir string) error {
		root, err := place.PrivateDir(dir)
		if err == nil {
			root.Close()
		}
		return err
	}
	if err := open(dir); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(dir)
	if err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v, want a folder of mode 0700", fi.Mode(), err)
	}
	refused := func(what, dir string) {
		t.Helper()
		before, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if open(dir) == nil {
			t.Errorf("%s: is opened", what)
		}
		if after, err := os.Stat(dir); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: its mode was %v and is %v", what, before.Mode(), after.Mode())
		}
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a file", file)
	if runtime.GOOS == "windows" {
		return
	}
	link := filepath.Join(t.TempDir(), "link")
	testenv.Symlink(t, dir, link)
	refused("a symlink", link)
	for mode, want := range map[os.FileMode]bool{0o755: true, 0o775: false, 0o777: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if want != (open(dir) == nil) {
			t.Errorf("mode %04o: want it opened %v", mode, want)
		}
		if !want {
			refused(mode.String(), dir)
		}
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		refused("another user's", dir)
	}
}

func TestLock(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	first, fresh, err := place.Lock(root, "f")
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	if _, _, err := place.Lock(root, "f"); !errors.Is(err, place.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	first.Close()
	again, fresh, err := place.Lock(root, "f")
	if err != nil || fresh {
		t.Errorf("after the first was closed: fresh %v, %v", fresh, err)
	}
	again.Close()
	if err := root.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := place.Lock(root, "d"); err == nil {
		t.Error("a folder was locked")
	}
}
