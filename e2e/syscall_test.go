package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: whichever system call it is at which a command is killed, or a
// disk fails, the final name holds what it held before or all of what is new,
// nothing outside the target has changed, and the same command run again comes
// to the end.

// fault is what happens at a system call, in the words of strace's inject.
type fault struct {
	calls string // the system calls that count
	what  string // what happens: "signal=SIGKILL", "error=ENOSPC"
	stays bool   // and at every one that follows, as a full disk does
	fatal bool   // no output is complete without the call
}

// faults are every way in which a file gets into its place, killed and failing.
var faults = []fault{
	{calls: "write,pwrite64", what: "signal=SIGKILL"},
	{calls: "fsync,fdatasync", what: "signal=SIGKILL"},
	{calls: "rename,renameat,renameat2", what: "signal=SIGKILL"},
	{calls: "openat", what: "signal=SIGKILL"},
	{calls: "unlink,unlinkat,link,linkat", what: "signal=SIGKILL"},
	{calls: "mkdirat,symlinkat,fchmod,ftruncate,flock", what: "signal=SIGKILL"},
	{calls: "pwrite64", what: "error=ENOSPC", stays: true},
	{calls: "pwrite64", what: "error=EIO", stays: true},
	{calls: "pwrite64", what: "error=EDQUOT", stays: true},
	{calls: "ftruncate", what: "error=EFBIG", stays: true},
	// Once only: a sync that failed and is tried again may succeed, with the bytes
	// gone.
	{calls: "fsync,fdatasync", what: "error=EIO", fatal: true},
	{calls: "rename,renameat,renameat2", what: "error=EIO", stays: true},
	{calls: "mkdirat,symlinkat", what: "error=ENOSPC", stays: true},
	// An answer that nobody gave is no answer: not that a name is free, or a stranger's.
	{calls: "newfstatat,statx", what: "error=EIO"},
}

const (
	// sweepStep is how many occurrences a sweep goes on by; CARTON_OCI_SWEEP says
	// otherwise (make chaos: 1, every one).
	sweepStep = 8
	// sweepQuiet is how many runs without a fault end a sweep: threads are counted
	// apart, so that one such run proves little.
	sweepQuiet = 2
)

// swept is a command whose system calls fail.
type swept struct {
	prepare func(t *testing.T, u *user)
	args    []string
	// check looks at what is there after a run, which has ended well or not.
	check func(t *testing.T, u *user, ended bool)
}

func TestEverySystemCallMayBeTheLast(t *testing.T) {
	strace := testenv.Program(t, "strace")
	if out, err := exec.Command(strace, "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		testenv.NotChecked(t, "strace can't trace here: %v: %s", err, out)
	}
	s := testregistry.Start(t, testregistry.Options{})
	m := sweptModel()
	source := newUser(t)
	m.write(t, source.path("m.carton"))
	source.must(t, "push", "m.carton", s.Host+"/org/m:1")
	source.must(t, "pull", s.Host+"/org/m:1", "-o", "canonical.carton")
	canonical := fileSum(t, source.path("canonical.carton"))

	unpacked := sweptModel()
	unpacked.files["MANIFEST"] = m.manifest()

	old := func(t *testing.T, u *user) { writeFile(t, u.path("out.carton"), "what was there before") }
	commands := map[string]swept{
		"pull": {
			args: []string{"pull", s.Host + "/org/m:1", "-o", "out.carton"},
			check: func(t *testing.T, u *user, ended bool) {
				wantFile(t, u.path("out.carton"), ended, "", canonical)
			},
		},
		"pull that replaces": {
			prepare: old, args: []string{"pull", "--force", s.Host + "/org/m:1", "-o", "out.carton"},
			check: func(t *testing.T, u *user, ended bool) {
				wantFile(t, u.path("out.carton"), ended, hexSum("what was there before"), canonical)
			},
		},
		"unpack": {
			args: []string{"pull", s.Host + "/org/m:1", "--unpack", "out"},
			check: func(t *testing.T, u *user, ended bool) {
				if _, err := os.Lstat(u.path("out")); errors.Is(err, os.ErrNotExist) && !ended {
					return
				}
				same(t, readTree(t, u.path("out")), unpacked)
			},
		},
		"push": {
			prepare: func(t *testing.T, u *user) { m.write(t, u.path("m.carton")) },
			args:    []string{"push", "m.carton", s.Host + "/org/swept-$N:1"},
		},
		// The tag names what is complete or is not there: again checks it by a pull.
		"push to a layout": {
			prepare: func(t *testing.T, u *user) { m.write(t, u.path("m.carton")) },
			args:    []string{"push", "m.carton", "oci:out:1"},
		},
	}
	if sweepEvery(t) == 1 { // it gets in its place as a carton does
		source.must(t, "cp", s.Host+"/org/m:1", "canonical.oci.tar")
		archive := fileSum(t, source.path("canonical.oci.tar"))
		commands["copy to an archive"] = swept{
			args:  []string{"cp", s.Host + "/org/m:1", "out.oci.tar"},
			check: func(t *testing.T, u *user, ended bool) { wantFile(t, u.path("out.oci.tar"), ended, "", archive) },
		}
	}
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			var points atomic.Int64
			t.Run("fault", func(t *testing.T) {
				for _, f := range faults {
					t.Run(f.what+" at "+f.calls, func(t *testing.T) {
						t.Parallel()
						c.sweep(t, strace, f, &points, canonical)
					})
				}
			})
			testenv.Checked(t, int(points.Load()), "system calls that failed or were the last")
			if points.Load() == 0 {
				t.Error("no system call failed: the sweep checks nothing")
			}
		})
	}
}

// sweepEvery returns how many occurrences a sweep goes on by.
func sweepEvery(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CARTON_OCI_SWEEP")
	if text == "" {
		return sweepStep
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CARTON_OCI_SWEEP: got %q, want 1 or more", text)
	}
	return n
}

// sweep lets the first, and then every so many-th, occurrence of a fault happen.
func (c swept) sweep(t *testing.T, strace string, f fault, points *atomic.Int64, canonical string) {
	t.Helper()
	step := sweepEvery(t)
	quiet := 0
	for n := 1; quiet < sweepQuiet; n += step {
		u := newUser(t)
		if c.prepare != nil {
			c.prepare(t, u)
		}
		writeFile(t, filepath.Join(filepath.Dir(u.dir), "canary"), "outside of the working folder")
		args := c.argsOf(f, n)
		if c.runWith(t, strace, f, n, u, args) {
			points.Add(1)
			quiet = 0
		} else {
			quiet++
		}
		if t.Failed() {
			t.Fatalf("at occurrence %d", n)
		}
		c.again(t, u, args, canonical)
		if t.Failed() {
			t.Fatalf("run again after occurrence %d", n)
		}
	}
}

// argsOf returns the arguments of one run; each push has a repository of its own.
func (c swept) argsOf(f fault, n int) []string {
	args := append([]string(nil), c.args...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$N", hexSum(fmt.Sprint(f, n))[:12])
	}
	return args
}

// runWith runs the command with one fault and looks at what it leaves. It reports
// whether the fault happened.
func (c swept) runWith(t *testing.T, strace string, f fault, n int, u *user, args []string) bool {
	t.Helper()
	when := fmt.Sprint(n)
	if f.stays {
		when += "+"
	}
	log := filepath.Join(filepath.Dir(u.dir), "strace.log")
	inject := fmt.Sprintf("inject=%s:%s:when=%s", f.calls, f.what, when)
	traced := append([]string{"-f", "-qq", "-o", log, "-e", "trace=" + f.calls, "-e", "signal=none", "-e", inject, cartonOCI}, args...)
	cmd := exec.Command(strace, traced...)
	cmd.Dir, cmd.Env = u.dir, u.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	ended := err == nil
	if c.check != nil {
		c.check(t, u, ended)
	}
	wantFile(t, filepath.Join(filepath.Dir(u.dir), "canary"), true, "", hexSum("outside of the working folder"))
	happened := strings.Contains(readText(t, log), "INJECTED")
	if strings.HasPrefix(f.what, "signal=") && cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		happened = true
	}
	if !happened && !ended {
		t.Errorf("no fault happened, and the command failed:\n%s", out.String())
	}
	if happened && ended && f.fatal && c.check != nil {
		t.Error("the command ended well")
	}
	if happened && !ended && !strings.HasPrefix(f.what, "signal=") && !strings.Contains(out.String(), "carton-oci: ") {
		t.Errorf("the command failed without a word: %q", out.String())
	}
	return happened
}

// again runs the command without a fault: it comes to its end, and leaves nothing
// beside what it made.
func (c swept) again(t *testing.T, u *user, args []string, canonical string) {
	t.Helper()
	u.must(t, args...)
	if c.check != nil {
		c.check(t, u, true)
	} else {
		u.must(t, "pull", args[len(args)-1], "-o", "out.carton")
		wantFile(t, u.path("out.carton"), true, "", canonical)
	}
	entries, err := os.ReadDir(u.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "partial") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// wantFile wants a file to have the one content, or, where it need not be there
// yet, to have the content before, "" for none.
func wantFile(t *testing.T, name string, there bool, before, after string) {
	t.Helper()
	if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) && !there && before == "" {
		return
	}
	if sum := fileSum(t, name); sum != after && (there || sum != before) {
		t.Errorf("%s has the sha256 %s, want %s", name, sum, after)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sweptModel is small: every system call of it is swept.
func sweptModel() *model {
	m := newModel(map[string]string{
		"model/weights.bin": random("weights", 3<<20),
		"model/small.bin":   random("small", 5000),
		"misc/empty":        "",
		"misc/notes.md":     "# notes\n",
	})
	m.symlinks["model/latest.bin"] = "weights.bin"
	return m
}
