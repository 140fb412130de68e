package place_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
)

func TestPrivateDir(t *testing.T) {
	lax := filepath.Join(t.TempDir(), "a", "b")
	if err := os.MkdirAll(lax, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{lax, filepath.Join(t.TempDir(), "c", "d")} {
		root, err := place.PrivateDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		root.Close()
		fi, err := os.Stat(dir)
		if err != nil || !fi.IsDir() || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o700 {
			t.Errorf("got %v, %v, want a folder of mode 0700", fi.Mode(), err)
		}
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if root, err := place.PrivateDir(file); err == nil {
		root.Close()
		t.Error("a file is no folder")
	}
	if os.Geteuid() == 0 && runtime.GOOS == "linux" {
		if err := os.Chown(lax, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if root, err := place.PrivateDir(lax); err == nil {
			root.Close()
			t.Error("the folder belongs to another user")
		}
	}
}

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if err := place.Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := place.Lock(second); !errors.Is(err, place.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	first.Close()
	if err := place.Lock(second); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
}
