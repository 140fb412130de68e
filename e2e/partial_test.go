package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: what has arrived stays, whatever happens to the runs that follow,
// until the output is complete.

// interference is a run between one that was killed and one that is left alone.
type interference struct {
	answer http.HandlerFunc               // in the registry's place; nil: it answers itself
	all    bool                           // also where no blob is asked for
	shell  string                         // what runs the command: exec "$@"
	before func(t *testing.T, out string) // something is done to what is there
	end    func(cmd *exec.Cmd)            // it is ended so; nil: it ends by itself
	may    bool                           // it may succeed
}

// partialModel is large enough for there to be a partial of it.
func partialModel() *model {
	return newModel(map[string]string{
		"model/a.safetensors": random("a", 12<<20), "model/b.bin": random("b", 9<<20), "model/c.bin": random("c", 3<<20),
		"model/config.json": "{}", "misc/readme.md": "# x\n",
	})
}

func text(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// wrongBytes answers a range with other bytes of its size.
func wrongBytes(w http.ResponseWriter, r *http.Request) {
	var first, last int64
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/*", first, last))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(make([]byte, last-first+1))
}

func after(d time.Duration, s os.Signal) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		time.Sleep(d)
		_ = cmd.Process.Signal(s)
	}
}

// textBytes is how many bytes of a journal say whose the partial is; of its content
// says what follows.
const textBytes = 4 << 10

// spoil changes the journal beside an output, wherever that is.
func spoil(change func(b []byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, out string) {
		t.Helper()
		for _, name := range journals(t, out) {
			b, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// journals returns the journals of an output, or of the blobs in it.
func journals(t *testing.T, out string) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{out + ".partial.journal", filepath.Join(out, "blobs", "sha256", "*.partial.journal")} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return all
}

var interferences = map[string]interference{
	"everything is 503":            {answer: text(503, ""), all: true},
	"everything is 401":            {answer: text(401, "", "WWW-Authenticate", `Basic realm="x"`), all: true},
	"everything is a sign-in page": {answer: text(200, "<html>sign in</html>", "Content-Type", "text/html"), all: true},
	"blobs are 503":                {answer: text(503, "")},
	"blobs are 404":                {answer: text(404, `{"errors":[{"code":"BLOB_UNKNOWN"}]}`)},
	"blobs are a sign-in page":     {answer: text(200, "<html>sign in</html>", "Content-Type", "text/html")},
	"blobs are empty":              {answer: text(200, "")},
	"blobs go to a dead host":      {answer: text(307, "", "Location", "http://127.0.0.1:9/x")},
	"ranges are of nothing":        {answer: text(206, "x", "Content-Range", "bytes 0-0/1")},
	"ranges are other bytes":       {answer: wrongBytes},
	"ranges are past the end":      {answer: text(416, "", "Content-Range", "bytes */3")},
	"killed at once":               {end: after(2*time.Millisecond, syscall.SIGKILL), may: true},
	"killed soon":                  {end: after(25*time.Millisecond, syscall.SIGKILL), may: true},
	"interrupted at once":          {end: after(5*time.Millisecond, os.Interrupt), may: true},
	"interrupted soon":             {end: after(40*time.Millisecond, os.Interrupt), may: true},
	"interrupted twice": {end: func(cmd *exec.Cmd) {
		after(30*time.Millisecond, os.Interrupt)(cmd)
		after(time.Millisecond, os.Interrupt)(cmd)
	}, may: true},
	"terminated":                {end: after(30*time.Millisecond, syscall.SIGTERM), may: true},
	"8 files may be open":       {shell: `ulimit -n 8; exec "$@"`, may: true},
	"11 files may be open":      {shell: `ulimit -n 11; exec "$@"`, may: true},
	"14 files may be open":      {shell: `ulimit -n 14; exec "$@"`, may: true},
	"files may not be large":    {shell: `ulimit -f 2048; exec "$@"`},
	"files may not be so large": {shell: `ulimit -f 20000; exec "$@"`, may: true},
	"the journal's header is damaged": {
		before: spoil(func(b []byte) []byte { b[textBytes+50] ^= 1; return b }),
		answer: text(503, ""),
	},
	"the journal's first records are damaged": {
		before: spoil(func(b []byte) []byte { clear(b[textBytes+96 : min(len(b), textBytes+130)]); return b }),
		answer: text(503, ""),
	},
	"the journal ends in garbage": {before: spoil(func(b []byte) []byte { return append(b, "garbage"...) }), answer: text(404, "")},
	"the journal ends in zeros":   {before: spoil(func(b []byte) []byte { return append(b, make([]byte, 4096)...) }), answer: text(404, "")},
	"the disk can't be synced":    {shell: `exec strace -f -qq -o /dev/null -e trace=fsync,fdatasync,syncfs -e inject=fsync,fdatasync,syncfs:error=EIO "$@"`, may: true},
	"it can't be renamed":         {shell: `exec strace -f -qq -o /dev/null -e trace=rename,renameat,renameat2,linkat -e inject=rename,renameat,renameat2,linkat:error=EACCES "$@"`, may: true},
	"it can't be read":            {shell: `exec strace -f -qq -o /dev/null -e trace=pread64 -e inject=pread64:error=EIO:when=3+ "$@"`, may: true},
	"no lock can be had":          {shell: `exec strace -f -qq -o /dev/null -e trace=flock -e inject=flock:error=ENOLCK "$@"`},
	"the disk is full":            {shell: `exec strace -f -qq -o /dev/null -e trace=pwrite64 -e inject=pwrite64:error=ENOSPC "$@"`},
	"the disk is full soon":       {shell: `exec strace -f -qq -o /dev/null -e trace=pwrite64 -e inject=pwrite64:error=ENOSPC:when=20+ "$@"`, may: true},
	"it can't be cut":             {shell: `exec strace -f -qq -o /dev/null -e trace=ftruncate -e inject=ftruncate:error=EIO "$@"`, may: true},
}

// gate stands in front of a registry and lets it answer or not.
type gate struct {
	is   atomic.Pointer[interference]
	trap *trap
}

func (g *gate) middleware(next http.Handler) http.Handler {
	trapped := g.trap.middleware(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if is := g.is.Load(); is != nil && is.answer != nil && (is.all || strings.Contains(r.URL.Path, "/blobs/")) {
			is.answer(w, r)
			return
		}
		trapped.ServeHTTP(w, r)
	})
}

// do runs the command under the interference.
func (is interference) do(t *testing.T, u *user, args []string) (code int, output string) {
	t.Helper()
	cmd := exec.Command(cartonOCI, args...)
	if is.shell != "" {
		cmd = exec.Command("/bin/sh", append([]string{"-c", is.shell, "sh", cartonOCI}, args...)...)
	}
	cmd.Dir, cmd.Env = u.dir, u.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if is.end != nil {
		is.end(cmd)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestPartialsStay(t *testing.T) {
	u := newUser(t)
	partialModel().write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	const repository, at, used = "/org/m:1", 18 << 20, 8 << 20
	u.must(t, "push", "m.carton", s.Host+repository)
	s.Traffic.Reset()
	u.must(t, "pull", s.Host+repository, "-o", "out.carton")
	total := s.Traffic.BlobBytesOut()

	kinds := map[string]func(u *user, front string) []string{
		"file":   func(_ *user, front string) []string { return []string{"pull", front + repository, "-o", "out"} },
		"folder": func(_ *user, front string) []string { return []string{"pull", front + repository, "--unpack", "out"} },
		"layout": func(_ *user, front string) []string { return []string{"push", front + repository, "oci:out:1"} },
		"archive": func(_ *user, front string) []string {
			return []string{"cp", "-r", front + repository, "oci-archive:out:1"}
		},
		"thin": func(u *user, front string) []string {
			u.must(t, "pull", front+repository, "--thin", "-o", "thin.carton")
			return []string{"pull", "thin.carton", "-o", "out", "--allow-link-host", front}
		},
		"thin to a folder": func(u *user, front string) []string {
			u.must(t, "pull", front+repository, "--thin", "-o", "thin.carton")
			return []string{"pull", "thin.carton", "--unpack", "out", "--allow-link-host", front}
		},
	}
	// One kind each, all of them in a whole sweep.
	for i, name := range slices.Sorted(maps.Keys(interferences)) {
		for k, base := range slices.Sorted(maps.Keys(kinds)) {
			is, kind := interferences[name], kinds[base]
			if sweepEvery(t) > 1 && i%len(kinds) != k {
				continue
			}
			t.Run(base+"/"+name, func(t *testing.T) {
				if strings.Contains(is.shell, "strace") {
					testenv.Program(t, "strace")
				}
				t.Parallel()
				u := newUser(t)
				g := &gate{trap: newTrap(false, at)}
				front := s.Front(t, g.middleware)
				args := append(kind(u, front.Host), "--concurrency", "2", "--stall-timeout", "2s", "--retries", "3")
				trial{trials: &trials{total: total}, at: at, signal: syscall.SIGKILL}.killed(t, u, g.trap, args...)

				if is.before != nil {
					is.before(t, u.path("out"))
				}
				g.is.Store(&is)
				code, output := is.do(t, u, args)
				g.is.Store(nil)
				if code == 0 && !is.may {
					t.Errorf("it succeeded\n%s", output)
				}
				if code == 0 {
					return
				}
				front.Traffic.Settle()
				front.Traffic.Reset()
				u.must(t, args...)
				if moved := front.Traffic.BlobBytesOut(); moved > total-used {
					t.Errorf("%d bytes moved, want at most %d; the run between said, with exit code %d:\n%s", moved, total-used, code, output)
				}
				if left := journals(t, u.path("out")); len(left) > 0 {
					t.Errorf("%q are left", left)
				}
			})
		}
	}
}
