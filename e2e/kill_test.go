package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: a transfer that was killed, at any point, is continued by the
// same command. What is at the final name is complete at any time, what comes
// out in the end is what would have come out at once, and what had arrived
// travels no second time.

const (
	// killedTrials is how many there are each way; CARTON_OCI_TRIALS says
	// otherwise (make soak).
	killedTrials = 15
	// killedSeed is where the points come from; CARTON_OCI_SEED says otherwise.
	killedSeed = 1
	// lostToKill is how much of what has passed the server a killed command may
	// lose, on average: what was in the sockets, in ranges that had not reached a
	// checksum, and in what the registry had not written.
	lostToKill = 10 << 20
	// beyondBlobs is what a command asks for beside blobs of members.
	beyondBlobs = 1 << 20
)

// killedModel is a carton of 64 MiB: few large members and some small ones.
func killedModel() *model {
	m := newModel(map[string]string{
		"model/decoder.bin":   random("decoder", 31<<20),
		"model/encoder.bin":   random("encoder", 20<<20),
		"model/embedding.bin": random("embedding", 10<<20),
		"misc/paper.pdf":      random("paper", 3<<20),
		"model/main.py":       "def load(): pass\n",
	})
	for i := range 30 {
		m.files[fmt.Sprintf("model/vocabulary/%02d.txt", i)] = random(fmt.Sprint("words", i), 9000)
	}
	m.symlinks["model/latest.bin"] = "decoder.bin"
	return m
}

// trials is what all trials of one direction share.
type trials struct {
	seed   uint64
	count  int
	total  int64 // bytes of blobs of a run that nobody kills
	passed atomic.Int64
	second atomic.Int64 // bytes of blobs of all second runs
	least  atomic.Int64 // what they had to move
}

func newTrials(t *testing.T) *trials {
	t.Helper()
	number := func(name string, otherwise uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	return &trials{
		seed:  number("CARTON_OCI_SEED", killedSeed),
		count: int(number("CARTON_OCI_TRIALS", killedTrials)),
	}
}

// trial is one command that is ended at one point and run again.
type trial struct {
	*trials
	n      int
	at     int64 // bytes of blobs
	signal os.Signal
}

// each runs the trials, two at a time, and says how they went.
func (ts *trials) each(t *testing.T, run func(t *testing.T, tr trial)) {
	t.Helper()
	t.Run("trial", func(t *testing.T) {
		for n := range ts.count {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				points := rand.New(rand.NewPCG(ts.seed, uint64(n)))
				tr := trial{trials: ts, n: n, at: 1 + points.Int64N(ts.total), signal: syscall.SIGKILL}
				if n%10 == 9 {
					tr.signal = os.Interrupt
				}
				defer func() {
					if t.Failed() {
						t.Logf("CARTON_OCI_SEED=%d, trial %d: %v after %d of %d bytes", ts.seed, n, tr.signal, tr.at, ts.total)
					} else {
						ts.passed.Add(1)
					}
				}()
				run(t, tr)
			})
		}
	})
	second, least := ts.second.Load(), ts.least.Load()
	if most := least + int64(ts.count)*lostToKill; second > most {
		t.Errorf("the second runs moved %d bytes, want at most %d: what had arrived travelled again", second, most)
	}
	testenv.Checked(t, int(ts.passed.Load()), "killed and run again, the second runs moved %d MiB, where %d were missing and %d are all (seed %d)",
		second>>20, least>>20, ts.total*int64(ts.count)>>20, ts.seed)
}

// killed runs the command until the trap springs, ends it, and waits.
func (tr trial) killed(t *testing.T, u *user, trap *trap, args ...string) {
	t.Helper()
	cmd := exec.Command(cartonOCI, args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer close(trap.ended)
	select {
	case <-trap.sprung:
	case err := <-done:
		t.Fatalf("carton-oci %s ended by itself: %v\n%s", strings.Join(args, " "), err, &stderr)
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		t.Fatalf("carton-oci %s: the point was not reached\n%s", strings.Join(args, " "), &stderr)
	}
	if err := cmd.Process.Signal(tr.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatalf("carton-oci %s: still there a minute after %v\n%s", strings.Join(args, " "), tr.signal, &stderr)
	}
	// After the last byte it may have been done before the signal came.
	if code := cmd.ProcessState.ExitCode(); tr.signal == os.Interrupt && code != 130 && tr.at < tr.total {
		t.Errorf("exit code: got %d, want 130\n%s", code, &stderr)
	}
}

// secondRun counts what the second run moved.
func (tr trial) secondRun(t *testing.T, moved int64) {
	t.Helper()
	tr.second.Add(moved)
	tr.least.Add(tr.total - tr.at)
	if moved > tr.total+beyondBlobs {
		t.Errorf("the second run moved %d bytes, want at most the %d that there are", moved, tr.total)
	}
}

func TestKilledPull(t *testing.T) {
	u := newUser(t)
	killedModel().write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	const repository = "/org/m:1"
	u.must(t, "push", "m.carton", s.Host+repository)

	kinds := []struct {
		args func(ref string) []string
		want map[string]string // the files of a run that nobody kills
	}{
		{args: func(ref string) []string { return []string{"pull", ref, "-o", "out.carton"} }},
		{args: func(ref string) []string { return []string{"pull", ref, "--unpack", "out"} }},
		{args: func(ref string) []string { return []string{"push", ref, "oci:out:1"} }},
		{args: func(ref string) []string { return []string{"cp", "-r", ref, "out.oci.tar"} }},
	}
	ts := newTrials(t)
	for i := range kinds {
		v := newUser(t)
		s.Traffic.Reset()
		v.must(t, kinds[i].args(s.Host+repository)...)
		kinds[i].want = sums(t, v.dir)
		ts.total = s.Traffic.BlobBytesOut()
	}
	ts.each(t, func(t *testing.T, tr trial) {
		kind := kinds[max(0, tr.n%6-2)] // three of six write a carton
		u := newUser(t)
		trap := newTrap(false, tr.at)
		front := s.Front(t, trap.middleware)
		args := kind.args(front.Host + repository)
		tr.killed(t, u, trap, args...)
		onlyComplete(t, u.dir, kind.want)

		front.Traffic.Settle()
		front.Traffic.Reset()
		u.must(t, args...)
		tr.secondRun(t, front.Traffic.BlobBytesOut())
		compare(t, "file", sums(t, u.dir), kind.want)
	})
}

func TestKilledPush(t *testing.T) {
	u := newUser(t)
	killedModel().write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	u.must(t, "push", "m.carton", "oci:layout:1")
	u.must(t, "cp", "oci:layout", "m.oci.tar")
	kinds := []struct {
		verb, source string
		flags        []string
		digest       string
	}{
		{verb: "push", source: u.path("m.carton")},
		{verb: "push", source: "oci:" + u.path("layout") + ":1"},
		{verb: "cp", source: u.path("m.oci.tar")},
		{verb: "push", source: u.path("m.carton"), flags: []string{"--layers", "tar"}},
	}
	ts := newTrials(t)
	for i := range kinds {
		s.Traffic.Reset()
		args := append([]string{kinds[i].verb, kinds[i].source, fmt.Sprintf("%s/org/whole%d:1", s.Host, i), "-q"}, kinds[i].flags...)
		kinds[i].digest = strings.TrimSpace(u.must(t, args...).stdout)
		ts.total = s.Traffic.BlobBytesIn()
	}
	ts.each(t, func(t *testing.T, tr trial) {
		kind := kinds[max(0, tr.n%6-2)]
		u := newUser(t)
		trap := newTrap(true, tr.at)
		trap.manifest = tr.n%10 == 8
		if trap.manifest {
			tr.at = tr.total
		}
		front := s.Front(t, trap.middleware)
		ref := fmt.Sprintf("%s/org/killed%d:1", front.Host, tr.n)
		args := append([]string{kind.verb, kind.source, ref}, kind.flags...)
		tr.killed(t, u, trap, args...)
		if r := u.run(t, "resolve", ref); r.code != 4 {
			t.Errorf("after the first run the tag is there: exit code %d, want 4\n%s", r.code, r.stdout)
		}

		front.Traffic.Settle()
		front.Traffic.Reset()
		u.must(t, args...)
		tr.secondRun(t, front.Traffic.BlobBytesIn())
		if r := u.must(t, "resolve", "-q", ref); strings.TrimSpace(r.stdout) != kind.digest {
			t.Errorf("got digest %s, want %s", r.stdout, kind.digest)
		}
		// A blob is not read again here: its upload ends with the registry's own
		// check of the digest, and the registry keeps one copy for all repositories.
		v := newUser(t) // remembers nothing
		v.must(t, "verify", "--no-content", ref)
	})
	for i := range kinds {
		u.must(t, "verify", fmt.Sprintf("%s/org/whole%d:1", s.Host, i))
	}
}

// sums returns the sha256 of every file below dir by its slash-separated path,
// and where every symlink points to.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		if d.Type()&fs.ModeSymlink != 0 {
			all[path], err = os.Readlink(name)
			return err
		}
		all[path] = fileSum(t, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// onlyComplete checks that whatever has its final name already is complete.
func onlyComplete(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	for path, sum := range sums(t, dir) {
		if complete, ok := want[path]; ok && sum != complete && path != "out/index.json" {
			t.Errorf("%s is at its final name and is not complete", path)
		}
	}
}
