//go:build unix

package localfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// within fails where something waits. A file that can be opened takes no time.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: still waits", what)
	}
}

// kinds is a folder with a file of each kind.
func kinds(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	for _, err := range []error{
		os.WriteFile(in("file"), []byte("content"), 0o600), os.Mkdir(in("folder"), 0o700), syscall.Mkfifo(in("pipe"), 0o600),
		os.Symlink("file", in("link")), os.Symlink("pipe", in("link-to-pipe")), os.Symlink("/dev/zero", in("link-to-device")),
		os.Symlink("/etc/passwd", in("link-outside")), os.Symlink("loop", in("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := kinds(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, tt := range []struct{ name, byName, inRoot, itself string }{
		{name: "file"},
		{name: "link", itself: "is a symlink"},
		{"folder", "is a folder", "is a folder", "is a folder"},
		{"pipe", "is a pipe", "is a pipe", "is a pipe"},
		{"link-to-pipe", "is a pipe", "is a pipe", "is a symlink"},
		{"socket", "is a socket", "is a socket", "is a socket"},
		{"link-to-device", "is a device", "escapes", "is a symlink"},
		{"link-outside", "", "escapes", "is a symlink"},
		{"loop", "symbolic links", "symbolic links", "is a symlink"},
		{"missing", "no such file", "no such file", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, open := range map[string]struct {
				open func() (*os.File, error)
				want string
			}{
				"Open":       {func() (*os.File, error) { return Open(filepath.Join(dir, tt.name)) }, tt.byName},
				"OpenIn":     {func() (*os.File, error) { return OpenIn(root, tt.name) }, tt.inRoot},
				"OpenItself": {func() (*os.File, error) { return OpenItself(root, tt.name) }, tt.itself},
			} {
				within(t, how, func() {
					f, err := open.open()
					if f != nil {
						f.Close()
					}
					if open.want == "" && err != nil || open.want != "" && (err == nil || !strings.Contains(err.Error(), open.want)) {
						t.Errorf("%s: got %v, want %q", how, err, open.want)
					}
				})
			}
		})
	}
}

// What is put in a file's place between looking and opening blocks nobody.
func TestASwapBlocksNobody(t *testing.T) {
	dir := t.TempDir()
	name, file, pipe := filepath.Join(dir, "x"), filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			os.Remove(name + ".new")
			os.Link([]string{file, pipe}[i%2], name+".new")
			os.Rename(name+".new", name)
		}
	}()
	files := FS(root)
	within(t, "open", func() {
		for range 3000 {
			for _, open := range []func() (fs.File, error){
				func() (fs.File, error) { return Open(name) },
				func() (fs.File, error) { return OpenIn(root, "x") },
				func() (fs.File, error) { return OpenItself(root, "x") },
				func() (fs.File, error) { return files.Open("x") },
			} {
				f, err := open()
				if err != nil {
					continue
				}
				if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
					t.Errorf("opened %v, %v", info.Mode(), err)
				}
				f.Close()
			}
		}
	})
	close(stop)
	<-stopped
}

// A file that somebody replaces by a rename, again and again, can always be opened.
func TestAFileThatIsReplacedIsOneOrTheOther(t *testing.T) {
	dir := t.TempDir()
	replace := func() error {
		name := filepath.Join(dir, "index.json")
		return errors.Join(os.WriteFile(name+".partial", []byte("whole"), 0o600), os.Rename(name+".partial", name))
	}
	if err := replace(); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := replace(); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 3000 {
		b, err := readItself(root, "index.json")
		if err != nil || string(b) != "whole" {
			t.Errorf("got %q, %v", b, err)
			break
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func readItself(root *os.Root, name string) ([]byte, error) {
	f, err := OpenItself(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func TestOpenRoot(t *testing.T) {
	dir := kinds(t)
	for name, want := range map[string]string{
		filepath.Join(dir, "folder"): "", dir: "", filepath.Join(dir, "pipe"): "not a directory", filepath.Join(dir, "file"): "not a directory", "": "no such file",
	} {
		within(t, name, func() {
			root, err := OpenRoot(name)
			if root != nil {
				root.Close()
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: got %v, want %q", name, err, want)
			}
		})
	}
}

func TestFS(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, fstest.MapFS{"a/b/c": {Data: []byte("c")}, "d": {Data: []byte("d")}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("d", filepath.Join(dir, "e")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := fstest.TestFS(FS(root), "a/b/c", "d", "e"); err != nil {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	dir := kinds(t)
	for name, want := range map[string]string{"file": "", "pipe": "is a pipe", "link-to-device": "is a device"} {
		within(t, name, func() {
			b, err := Read(filepath.Join(dir, name), 7)
			if want == "" && (err != nil || string(b) != "content") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: got %q, %v, want %q", name, b, err, want)
			}
		})
	}
	if _, err := Read(filepath.Join(dir, "file"), 6); err == nil || !strings.Contains(err.Error(), "more than 6 bytes") {
		t.Errorf("over the limit: got %v", err)
	}
	if b, err := Read(os.DevNull, 7); err != nil || len(b) != 0 {
		t.Errorf("%s: got %q, %v", os.DevNull, b, err)
	}
}

// The kernel's log says that it is a regular file, and ends never.
func TestReadOfAFileThatWaits(t *testing.T) {
	const name = "/proc/kmsg"
	if f, err := Open(name); err != nil {
		testenv.NotChecked(t, "the kernel's log can't be opened: %v", err)
	} else {
		f.Close()
	}
	inheritedWait = 200 * time.Millisecond
	defer func() { inheritedWait = time.Minute }()
	within(t, name, func() {
		if _, err := Read(name, 1<<30); err == nil {
			t.Error("it came to an end")
		}
	})
}

// What a shell hands over by <(…) is a pipe, and read as long as it ends.
func TestReadOfAnInheritedPipe(t *testing.T) {
	inheritedWait = 100 * time.Millisecond
	defer func() { inheritedWait = time.Minute }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := w.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	within(t, "a pipe that stays open", func() {
		if _, err := Read(name, 100); err == nil || !strings.Contains(err.Error(), "did not end within") {
			t.Errorf("a pipe that stays open: got %v", err)
		}
	})
	if _, err := w.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if b, err := Read(name, 100); err != nil || string(b) != "content" {
		t.Errorf("got %q, %v", b, err)
	}
}
