//go:build unix

package place_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
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

// What is mounted in a folder is none of a pull's, whatever its name.
func TestMountInAFolderIsNotReplaced(t *testing.T) {
	disk := testenv.SmallDisk(t, 256<<10)
	name := filepath.Dir(disk)
	write(t, filepath.Join(disk, "f"), "mine")
	known := func(fs.FS) func(string, bool) bool {
		return func(p string, folder bool) bool {
			return folder && p == filepath.Base(disk) || p == filepath.Base(disk)+"/f"
		}
	}
	if err := place.CheckReplace(name, known); !errors.Is(err, place.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
}

// A folder that its owner made read-only is replaced all the same when the owner
// asks for it, and nothing of it is left.
func TestReadOnlyFolderIsReplaced(t *testing.T) {
	if os.Geteuid() == 0 {
		runAs(t, 12345)
		return
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	write(t, filepath.Join(name, "sub", "f"), "old")
	if err := errors.Join(os.Chmod(filepath.Join(name, "sub"), 0o555), os.Chmod(name, 0o555)); err != nil {
		t.Fatal(err)
	}
	if err := putFolder(name, "new", place.Options{Replace: true}); err != nil {
		t.Error(err)
	}
	wantTree(t, dir, "m/", "m/f=new")
}

// Where the sticky bit keeps a name for its owner that is said at the beginning.
func TestNameThatOnlyItsOwnerMayGiveAway(t *testing.T) {
	if os.Geteuid() == 0 {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "m"), "of root")
		write(t, filepath.Join(dir, "d", "f"), "of root")
		if err := errors.Join(os.Chmod(dir, 0o777|os.ModeSticky), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PLACE_TEST_STICKY", dir)
		runAs(t, 12345)
		wantTree(t, dir, "d/", "d/f=of root", "m=of root")
		return
	}
	dir := os.Getenv("PLACE_TEST_STICKY")
	if dir == "" {
		testenv.NotChecked(t, "giving a file to another user needs root")
	}
	for what, err := range map[string]error{
		"file":   put(filepath.Join(dir, "m"), "x", place.Options{Replace: true}),
		"folder": putFolder(filepath.Join(dir, "d"), "x", place.Options{Replace: true}),
	} {
		if !errors.Is(err, place.ErrExist) || !strings.Contains(err.Error(), "only its owner may replace it") || len(hint.Of(err)) == 0 {
			t.Errorf("%s: got %v, want ErrExist with a hint", what, err)
		}
	}
}

// runAs runs the test again as another user.
func runAs(t *testing.T, uid uint32) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "place") //nolint:usetesting // that user can't look into t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, rerr := os.ReadFile(self)
	copied := filepath.Join(dir, "test")
	if err := errors.Join(rerr, os.Chmod(dir, 0o777), os.WriteFile(copied, b, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o755),
		os.Chown(filepath.Join(dir, "tmp"), int(uid), int(uid))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"), "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	testenv.Emulated(t, err)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as user %d: %v\n%s", uid, err, out)
	}
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

// Looking at an output leaves nothing open: Windows would neither rename nor remove
// what somebody has open, and everybody runs out of descriptors.
func TestLookingLeavesNothingOpen(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m", "f"), "x")
	open := func() int {
		list, err := os.ReadDir("/dev/fd")
		if err != nil {
			testenv.NotChecked(t, "this system does not tell what is open (%v)", err)
		}
		return len(list)
	}
	before := open()
	for range 20 {
		if err := place.CheckReplace(filepath.Join(dir, "m"), all); err != nil {
			t.Fatal(err)
		}
		if what, err := place.Foreign(filepath.Join(dir, "m"), true); what != "" || err != nil {
			t.Fatal(what, err)
		}
	}
	if now := open(); now > before+2 {
		t.Errorf("%d descriptors are open, and were %d before", now, before)
	}
}
