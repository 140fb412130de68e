package place_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// TestMain makes the test binary also the second process of some tests: with
// PLACE_TEST_HOLD=file or folder it begins the output in its argument, says
// "ready", and ends when its input does.
func TestMain(m *testing.M) {
	switch os.Getenv("PLACE_TEST_HOLD") {
	case "file":
		hold(func(name string) (io.Closer, error) {
			f, err := place.Create(name, place.Options{})
			if err == nil {
				_, err = f.WriteAt([]byte("of the other process, and longer than anything else"), 0)
			}
			return closer(func() error { return f.Discard() }), err
		})
	case "folder":
		hold(func(name string) (io.Closer, error) {
			d, err := place.CreateFolder(name, place.Options{})
			if err == nil {
				err = fill(d, "other", "other")
			}
			return closer(func() error { return d.Discard() }), err
		})
	default:
		os.Exit(m.Run())
	}
}

type closer func() error

func (c closer) Close() error { return c() }

func hold(begin func(name string) (io.Closer, error)) {
	c, err := begin(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := c.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is another process that holds an output.
type process struct {
	*exec.Cmd
	stdin io.Closer
}

// hold starts a process that holds name, as a file or a folder.
func holdElsewhere(t *testing.T, what, name string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], name)
	cmd.Env = append(os.Environ(), "PLACE_TEST_HOLD="+what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		testenv.Emulated(t, err)
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return &process{cmd, in}
}

// end lets the process end as it should.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	if err := p.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}

// kill ends it without giving it a chance to clean up.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
}

// tree lists what is in dir: "path", "path/" for folders, "path -> target" for
// symlinks, "path=content" for files; of a journal of ours what the caller has
// written, behind "OURS".
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		switch {
		case e.IsDir():
			list = append(list, rel+"/")
		case e.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(p)
			list = append(list, rel+" -> "+target)
			return err
		case e.Type().IsRegular():
			b, err := os.ReadFile(p)
			if text := min(len(b), place.TextBytes); text > 0 && strings.HasPrefix(string(b), place.JournalMark) {
				b = append([]byte("OURS"), b[text:]...)
			}
			list = append(list, rel+"="+string(b))
			return err
		default:
			list = append(list, rel+" "+e.Type().String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func wantTree(t *testing.T, dir string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(tree(t, dir), "\n")); diff != "" {
		t.Errorf("the folder (-want +got):\n%s", diff)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// put writes content to name through the package.
func put(name, content string, opts place.Options) error {
	f, err := place.Create(name, opts)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		return err
	}
	return f.Commit()
}

// fill makes a file of a folder.
func fill(d *place.Folder, path, content string) error {
	f, err := d.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(content)
	return err
}

// all is for a folder of which everything may be removed.
func all(fs.FS) func(string, bool) bool { return func(string, bool) bool { return true } }
