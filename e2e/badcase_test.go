package e2e

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/google/go-cmp/cmp"
)

// Exit codes, as README.md lists them.
const (
	failed     = 1
	badUsage   = 2
	badContent = 3
	notFound   = 4
	notAllowed = 5
)

type badCase struct {
	name string
	// prepare returns the command's arguments.
	prepare func(t *testing.T, u *user, s *testregistry.Server) []string
	code    int
	want    []string // in the line; of verify also in the report
	hint    string   // in a hint, "" for none wanted
}

func runBadCases(t *testing.T, opts testregistry.Options, cases []badCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			u := newUser(t)
			s := testregistry.Start(t, opts)
			args := tt.prepare(t, u, s)
			before, kept := snapshot(t, u.dir, u.tmp, u.home), manifests(s)
			r := u.run(t, args...)
			checkError(t, r, tt)
			if diff := cmp.Diff(before, snapshot(t, u.dir, u.tmp, u.home)); diff != "" {
				t.Errorf("something is left behind, or gone:\n%s", diff)
			}
			if got := manifests(s); got != kept {
				t.Errorf("%d image manifests were put into the registry, want none", got-kept)
			}
		})
	}
}

// checkError checks what a failed command says: on standard error one line that
// tells what, besides hints, warnings and what was said before; on standard
// output nothing, but for the report of verify.
func checkError(t *testing.T, r result, want badCase) {
	t.Helper()
	if r.code != want.code {
		t.Errorf("exit code: got %d, want %d", r.code, want.code)
	}
	var errs, hints []string
	for line := range strings.Lines(r.stderr) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "hint: "):
			hints = append(hints, line)
		case strings.HasPrefix(line, "warning: "), strings.HasSuffix(line, " to send"):
		default:
			errs = append(errs, line)
		}
	}
	if len(errs) != 1 || !strings.HasPrefix(errs[0], "carton-oci: ") {
		t.Errorf("standard error: want one line that begins with carton-oci:")
	}
	text := strings.Join(errs, "\n")
	if r.args[0] == "verify" {
		text += r.stdout
	} else if r.stdout != "" {
		t.Errorf("standard output: got %q, want nothing", r.stdout)
	}
	for _, part := range want.want {
		if !strings.Contains(text, part) {
			t.Errorf("the error does not name %q", part)
		}
	}
	own := strings.ReplaceAll(r.stderr, "tls: failed to verify", "") // crypto/tls's words
	for _, never := range []string{"failed to", "lovelace", "byron", ".partial"} {
		if strings.Contains(own, never) {
			t.Errorf("standard error says %q", never)
		}
	}
	if !strings.Contains(strings.Join(hints, "\n"), want.hint) {
		t.Errorf("no hint names %q", want.hint)
	}
	if t.Failed() {
		t.Logf("carton-oci %s: standard error:\n%s", strings.Join(r.args, " "), r.stderr)
	}
}

// snapshot returns what folders hold: every path, with its content's hash.
func snapshot(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			seen[name] = d.Type().String()
			if d.Type().IsRegular() {
				seen[name] = fileSum(t, name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// manifests counts the image manifests that were put so far.
func manifests(s *testregistry.Server) int {
	return s.Traffic.Count("PUT", testregistry.Manifest)
}
