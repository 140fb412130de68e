package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// user is somebody with a home, a cache and a working folder of their own, in
// which they run the command.
type user struct {
	dir   string // the working folder
	home  string
	cache string // CARTON_OCI_CACHE
	tmp   string // TMPDIR
	env   []string
	stdin string // for the next command
}

func newUser(t testing.TB) *user {
	t.Helper()
	root := t.TempDir()
	u := &user{
		dir: filepath.Join(root, "work"), home: filepath.Join(root, "home"),
		cache: filepath.Join(root, "cache"), tmp: filepath.Join(root, "tmp"),
	}
	for _, dir := range []string{u.dir, u.home, u.tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	u.env = []string{
		"HOME=" + u.home, "DOCKER_CONFIG=" + filepath.Join(u.home, ".docker"),
		"CARTON_OCI_CACHE=" + u.cache, "TMPDIR=" + u.tmp, "PATH=" + os.Getenv("PATH"),
	}
	return u
}

// with returns a user that differs by environment variables ("NAME=value").
func (u *user) with(env ...string) *user {
	other := *u
	other.env = append(append([]string(nil), u.env...), env...)
	return &other
}

// path returns the path of a file in the working folder.
func (u *user) path(name string) string { return filepath.Join(u.dir, name) }

// emptyCache forgets what was remembered from earlier runs.
func (u *user) emptyCache(t testing.TB) {
	t.Helper()
	if err := os.RemoveAll(u.cache); err != nil {
		t.Fatal(err)
	}
}

// result is how a command ended.
type result struct {
	args   []string
	stdout string
	stderr string
	code   int
}

// run runs the command under test in the working folder.
func (u *user) run(t testing.TB, args ...string) result {
	t.Helper()
	return u.exec(t, cartonOCI, args...)
}

func (u *user) exec(t testing.TB, program string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	cmd.Stdin = strings.NewReader(u.stdin)
	u.stdin = ""
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", program, err)
	}
	return result{args, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs the command and wants it to succeed.
func (u *user) must(t testing.TB, args ...string) result {
	t.Helper()
	r := u.run(t, args...)
	if r.code != 0 {
		t.Fatalf("carton-oci %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// pushed is what push --format json prints.
type pushed struct {
	Reference     string
	Digest        string
	ModelHash     string
	ArtifactType  string
	Size          int64
	Layers        []pushedLayer
	BytesUploaded *int64
	Seconds       *float64
}

type pushedLayer struct {
	Paths     []string
	MediaType string
	Digest    string
	Size      int64
	Status    string
}

// layer returns the layer that holds the member.
func (p pushed) layer(t testing.TB, path string) pushedLayer {
	t.Helper()
	for _, l := range p.Layers {
		for _, have := range l.Paths {
			if have == path {
				return l
			}
		}
	}
	t.Fatalf("no layer holds %s", path)
	return pushedLayer{}
}

// statuses counts the layers by status.
func (p pushed) statuses() map[string]int {
	count := map[string]int{}
	for _, l := range p.Layers {
		count[l.Status]++
	}
	return count
}

// pulled is what pull --format json prints.
type pulled struct {
	Reference       string
	Digest          string
	ModelHash       string
	Path            string
	BytesDownloaded *int64
	BytesResumed    *int64
	Seconds         *float64
}

func (u *user) push(t testing.TB, args ...string) pushed {
	t.Helper()
	var p pushed
	u.json(t, &p, append([]string{"push", "--format", "json"}, args...))
	return p
}

func (u *user) pull(t testing.TB, args ...string) pulled {
	t.Helper()
	var p pulled
	u.json(t, &p, append([]string{"pull", "--format", "json"}, args...))
	return p
}

// json runs a command that prints one object, with exactly the fields of into.
func (u *user) json(t testing.TB, into any, args []string) {
	t.Helper()
	r := u.must(t, args...)
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	if err := dec.Decode(into); err != nil {
		t.Fatalf("carton-oci %s: %v in\n%s", strings.Join(args, " "), err, r.stdout)
	}
	if dec.More() {
		t.Errorf("carton-oci %s: want one object on standard output, got\n%s", strings.Join(args, " "), r.stdout)
	}
}

// login stores credentials as a user would.
func (u *user) login(t testing.TB, s *testregistry.Server, name, password string, flags ...string) {
	t.Helper()
	u.stdin = password + "\n"
	u.must(t, append([]string{"login", "-u", name, "--password-stdin", s.Host}, flags...)...)
}
