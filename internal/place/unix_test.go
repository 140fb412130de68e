//go:build unix

package place_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// New files and folders have the modes that the umask says, as everybody's have.
func TestTheUmaskHolds(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for _, mask := range []os.FileMode{0o077, 0o022, 0o002, 0, 0o027} {
		syscall.Umask(int(mask))
		dir := t.TempDir()
		f, err := place.Create(filepath.Join(dir, "f"), place.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantMode(t, filepath.Join(dir, "f.partial"), 0o600)
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		wantMode(t, filepath.Join(dir, "f"), 0o666&^mask)
		d, err := place.CreateFolder(filepath.Join(dir, "d"), place.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantMode(t, filepath.Join(dir, "d.partial"), os.ModeDir|0o700)
		if err := errors.Join(d.Mkdir("sub"), fill(d, "sub/f", "x"), d.Commit()); err != nil {
			t.Fatal(err)
		}
		wantMode(t, filepath.Join(dir, "d"), os.ModeDir|0o777&^mask)
		wantMode(t, filepath.Join(dir, "d", "sub"), os.ModeDir|0o777&^mask)
		wantMode(t, filepath.Join(dir, "d", "sub", "f"), 0o666&^mask)
	}
}

func wantMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode() != want {
		t.Errorf("%s: got mode %v, want %v", path, fi.Mode(), want)
	}
}

func TestPipesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b.partial"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Opening a pipe would wait for its other end for ever.
	for _, name := range []string{"a", "b"} {
		err := put(filepath.Join(dir, name), "x", place.Options{Replace: true})
		if err == nil || !strings.Contains(err.Error(), "is a pipe") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

func TestPartialOfAnotherUserIsNotUsed(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.NotChecked(t, "giving a file to another user needs root")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.partial"), "theirs")
	write(t, filepath.Join(dir, "d.partial", "x"), "theirs")
	for _, name := range []string{"f.partial", "d.partial"} {
		if err := os.Lchown(filepath.Join(dir, name), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{
		"f.partial": put(filepath.Join(dir, "f"), "x", place.Options{Replace: true}),
		"d.partial": putFolder(filepath.Join(dir, "d"), "x", place.Options{Replace: true}),
	} {
		if err == nil || !strings.Contains(err.Error(), name+" belongs to another user") || len(hint.Of(err)) == 0 {
			t.Errorf("%s: got %v, want a refusal with a hint", name, err)
		}
	}
	wantTree(t, dir, "d.partial/", "d.partial/x=theirs", "f.partial=theirs")
}

func TestFullDisk(t *testing.T) {
	dir := testenv.SmallDisk(t, 256<<10)
	write(t, filepath.Join(dir, "m"), "old")
	err := put(filepath.Join(dir, "m"), strings.Repeat("x", 1<<20), place.Options{Replace: true})
	if !errors.Is(err, syscall.ENOSPC) || len(hint.Of(err)) == 0 {
		t.Errorf("got %v, want ENOSPC with a hint", err)
	}
	if want := "write " + filepath.Join(dir, "m") + ": "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %q, want it to begin with %q", err, want)
	}
	wantTree(t, dir, "m=old")
}

func TestMountPointIsNotReplaced(t *testing.T) {
	dir := testenv.SmallDisk(t, 256<<10)
	err := putFolder(dir, "x", place.Options{})
	if !errors.Is(err, syscall.EBUSY) || len(hint.Of(err)) == 0 {
		t.Errorf("got %v, want EBUSY with a hint", err)
	}
	wantTree(t, filepath.Dir(dir), filepath.Base(dir)+"/")
}

func TestHintsForWhatAUserCanChange(t *testing.T) {
	for _, errno := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, syscall.EACCES,
		syscall.EBUSY, syscall.EXDEV, syscall.EMFILE, syscall.ENAMETOOLONG,
	} {
		err := place.Explain("write", "dir/m", &os.LinkError{Op: "renameat", Old: "m.partial", New: "m", Err: errno})
		if got, want := err.Error(), "write dir/m: "+errno.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if !errors.Is(err, errno) || len(hint.Of(err)) != 1 {
			t.Errorf("%v: hints %q, want one", err, hint.Of(err))
		}
		if again := place.Explain("create", "other", err); again.Error() != err.Error() {
			t.Errorf("explained twice: %v", again)
		}
	}
	if err := place.Explain("write", "m", nil); err != nil {
		t.Errorf("no error: got %v", err)
	}
	if got := hint.Of(place.Explain("write", "m", syscall.EIO)); got != nil {
		t.Errorf("EIO: got hints %q, want none", got)
	}
}
