package e2e

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: nothing hostile gets in. What a stranger's carton says is judged
// before it is done, nothing is written outside of the target, and no bomb
// fills the memory.

// bombMost is the memory, in bytes, that a bomb may cost the command.
const bombMost = 256 << 20

// readVector returns the expectation, the kind and the body of a test vector of
// pkg/carton; its README.md says what a vector looks like.
func readVector(t *testing.T, name string) (expect, kind string, body []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := bytes.Cut(b, []byte("\n\n"))
	for line := range strings.SplitSeq(string(head), "\n") {
		switch key, value, _ := strings.Cut(line, ": "); key {
		case "expect":
			expect = value
		case "kind":
			kind = value
		case "compressed":
			r, err := zlib.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return expect, kind, body
}

// canary is a tree around the working folder in which nothing may change.
type canary struct {
	root   string
	before map[string]string
}

func newCanary(t *testing.T, u *user) *canary {
	t.Helper()
	c := &canary{root: filepath.Dir(u.dir)}
	for _, name := range []string{"canary", "evil", "etc/passwd", "home/.ssh/authorized_keys", "work/victim"} {
		path := filepath.Join(c.root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, "do not touch "+name)
	}
	c.before = c.tree(t)
	return c
}

// tree returns what every file holds and every symlink points to, but for the
// output, the cache and the cartons in the working folder.
func (c *canary) tree(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(c.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.root, name)
		switch {
		case err != nil:
			return err
		case rel == "cache" || strings.HasPrefix(rel, "work/out"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || strings.HasSuffix(rel, ".carton"):
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			found[rel], err = os.Readlink(name)
			return err
		}
		b, err := os.ReadFile(name)
		found[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// check wants nothing to have changed.
func (c *canary) check(t *testing.T) {
	t.Helper()
	compare(t, "file outside of the target", c.tree(t), c.before)
}

// measured runs the command and returns how it ended and the most memory, in
// bytes, that it had by its own account: what the kernel says of a child counts
// what its parent had before.
func (u *user) measured(t *testing.T, args ...string) (result, int64) {
	t.Helper()
	r := u.run(t, append(args, "--debug")...)
	var kept []string
	peak := int64(-1)
	for line := range strings.Lines(r.stderr) {
		if text, ok := strings.CutPrefix(line, "debug: "); ok {
			var mib int64
			if n, _ := fmt.Sscanf(text, "peak memory: %d MiB", &mib); n == 1 {
				peak = mib << 20
			}
			continue
		}
		kept = append(kept, line)
	}
	if peak < 0 {
		t.Fatalf("carton-oci %s --debug tells no peak memory:\n%s", strings.Join(args, " "), r.stderr)
	}
	r.stderr = strings.Join(kept, "")
	return r, peak
}

// Every carton among the vectors, through the ways in that a stranger's file has:
// each is refused with exit code 3 and without a trace, or comes out whole.
func TestVectorsThroughTheCommand(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(testenv.Root(), "pkg", "carton", "testdata", "vectors", "*.vector"))
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d vectors, %v", len(names), err)
	}
	u := newUser(t)
	c := newCanary(t, u)
	refused, read, most := 0, 0, int64(0)
	for _, name := range names {
		expect, kind, body := readVector(t, name)
		if kind != "carton" {
			continue
		}
		writeFile(t, u.path("m.carton"), string(body))
		for _, args := range [][]string{
			{"pull", "./m.carton", "-o", "out.carton"},
			{"pull", "./m.carton", "--unpack", "out"},
			{"push", "./m.carton", "oci:out-layout:1"},
		} {
			r, peak := u.measured(t, args...)
			most = max(most, peak)
			c.check(t)
			switch {
			case expect == "success" && r.code == 0:
				read++
			case expect != "success" && r.code == badContent && strings.Contains(r.stderr, "carton-oci: "):
				refused++
				if left, err := filepath.Glob(u.path("out*")); err != nil || len(left) > 0 && args[0] == "pull" {
					t.Errorf("%s: %v leaves %q, %v", filepath.Base(name), args, left, err)
				}
			default:
				t.Errorf("%s, want %s: %v ended with %d: %s", filepath.Base(name), expect, args, r.code, r.stderr)
			}
			for _, out := range []string{"out.carton", "out", "out-layout"} {
				if err := os.RemoveAll(u.path(out)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if most > bombMost {
		t.Errorf("got a peak memory of %d MiB, want at most %d", most>>20, bombMost>>20)
	}
	testenv.Checked(t, refused+read, "%d commands refused a carton, %d read one, the canary unchanged after each, peak memory %d MiB", refused, read, most>>20)
}
