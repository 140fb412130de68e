package checkout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/checkout"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// repository is a folder with git in it.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T, remote string) repository {
	t.Helper()
	testenv.Program(t, "git")
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": os.TempDir(),
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	} {
		t.Setenv(name, value)
	}
	r := repository{t, t.TempDir()}
	r.git("init", "-q")
	r.write("file", "one")
	if remote != "" {
		r.git("remote", "add", "origin", remote)
	}
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", r.dir, "-c", "protocol.file.allow=always"}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "message")
	return r.git("rev-parse", "HEAD")
}

// env is the environment of a CI job.
type env map[string]string

func (e env) get(name string) string { return e[name] }

const (
	a40      = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	theirURL = "https://github.com/Org/model"
)

func gitHub(sha string) env {
	return env{"GITHUB_ACTIONS": "true", "GITHUB_SHA": sha, "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "Org/model"}
}

func read(t *testing.T, dir string, e env) *checkout.Source {
	t.Helper()
	s, err := checkout.Read(t.Context(), dir, e.get)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func want(t *testing.T, got *checkout.Source, revision, url string, warnings ...string) {
	t.Helper()
	if got.Revision != revision || got.URL != url || len(got.Warnings) != len(warnings) {
		t.Fatalf("got %+v, want %s of %q and %d warnings", got, revision, url, len(warnings))
	}
	for i, w := range warnings {
		if !strings.Contains(got.Warnings[i], w) {
			t.Errorf("got the warning %q, want one with %q", got.Warnings[i], w)
		}
	}
}

func TestCheckouts(t *testing.T) {
	r := newRepository(t, "https://x-access-token:ghs_secret@github.com/Org/model.git")
	commit := r.commit()
	want(t, read(t, r.dir, nil), commit, theirURL)

	sub := filepath.Join(r.dir, "a", "b")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	want(t, read(t, sub, nil), commit, theirURL) // below its top
	r.git("checkout", "-q", "--detach")
	want(t, read(t, r.dir, nil), commit, theirURL)
	r.write("new", "unknown to git, as models often are")
	want(t, read(t, r.dir, nil), commit, theirURL)

	tree := filepath.Join(t.TempDir(), "tree")
	r.git("worktree", "add", "-q", tree)
	want(t, read(t, tree, nil), commit, theirURL)

	r.write("file", "two")
	want(t, read(t, r.dir, nil), commit+"-dirty", theirURL, "are changed")
	r.write("file", "one") // another time of change, the same content
	want(t, read(t, r.dir, nil), commit, theirURL)

	other := newRepository(t, "git@gitlab.example.com:team/sub/other.git")
	inner := other.commit()
	r.git("submodule", "--quiet", "add", other.dir, "part")
	r.git("-C", "part", "remote", "set-url", "origin", "git@gitlab.example.com:team/sub/other.git")
	commit = r.commit()
	want(t, read(t, filepath.Join(r.dir, "part"), nil), inner, "https://gitlab.example.com/team/sub/other")
	want(t, read(t, r.dir, nil), commit, theirURL)
}

func TestRemotes(t *testing.T) {
	r := newRepository(t, "")
	commit := r.commit()
	const nowhere = "no remote with an address for others"
	want(t, read(t, r.dir, nil), commit, "", nowhere)
	r.git("remote", "add", "up", theirURL)
	want(t, read(t, r.dir, nil), commit, theirURL) // the only one
	r.git("remote", "add", "fork", "https://github.com/me/model")
	want(t, read(t, r.dir, nil), commit, "", nowhere) // which one?
	r.git("remote", "add", "origin", "gh:Org/model")
	want(t, read(t, r.dir, nil), commit, "", nowhere)
	r.git("config", "url.https://token@github.com/.insteadOf", "gh:")
	want(t, read(t, r.dir, nil), commit, theirURL)
}

func TestJobs(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	want(t, read(t, empty, gitHub(a40)), a40, theirURL)
	gitLab := env{"GITLAB_CI": "true", "CI_COMMIT_SHA": a40, "CI_PROJECT_URL": "https://gitlab.com/g/sub/model", "CI_REPOSITORY_URL": "https://gitlab-ci-token:secret@gitlab.com/g/sub/model.git"}
	want(t, read(t, empty, gitLab), a40, "https://gitlab.com/g/sub/model")
	for name, e := range map[string]env{
		"no job": {}, "no commit": gitHub(""), "not one": gitHub("main; rm -rf /"), "only said": {"GITHUB_SHA": a40},
	} {
		if s, err := checkout.Read(t.Context(), empty, e.get); err == nil || !strings.Contains(err.Error(), "no git checkout") {
			t.Errorf("%s: got %+v, %v, want an error", name, s, err)
		}
	}

	r := newRepository(t, "")
	if s, err := checkout.Read(t.Context(), r.dir, env{}.get); err == nil || !strings.Contains(err.Error(), "no commit yet") {
		t.Errorf("got %+v, %v, want an error", s, err)
	}
	want(t, read(t, r.dir, gitHub(a40)), a40, theirURL, "no commit yet: the CI job's commit is taken")
	commit := r.commit()
	want(t, read(t, r.dir, gitHub(commit)), commit, theirURL)
	want(t, read(t, r.dir, gitHub(a40)), commit, "", "no remote") // another repository than the job's
	r.git("remote", "add", "origin", "https://github.com/Org/part")
	want(t, read(t, r.dir, gitHub(commit)), commit, "https://github.com/Org/part")
}

// Containers of CI jobs often run as another user than the one who made the
// checkout: git refuses to look into it.
func TestSomebodyElsesCheckout(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.NotChecked(t, "only root can give a folder to somebody else")
	}
	r := newRepository(t, theirURL)
	commit := r.commit()
	for _, name := range []string{r.dir, filepath.Join(r.dir, ".git")} {
		if err := os.Chown(name, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := checkout.Read(t.Context(), r.dir, env{}.get); err == nil || !strings.Contains(err.Error(), "dubious ownership") {
		t.Errorf("got %+v, %v, want git's error", s, err)
	}
	want(t, read(t, r.dir, gitHub(commit)), commit, theirURL, "dubious ownership")
}

func TestNoGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if s, err := checkout.Read(t.Context(), ".", env{}.get); err == nil || !strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("got %+v, %v, want an error", s, err)
	}
	want(t, read(t, ".", gitHub(a40)), a40, theirURL)
}

func TestAddress(t *testing.T) {
	got := map[string]string{}
	addresses := map[string]string{
		"https://github.com/Org/model":                        theirURL,
		"https://github.com/Org/model.git/":                   theirURL,
		"https://user:secret@GitHub.com/Org/model.git":        theirURL,
		"https://secret@github.com/Org/model?secret=1#secret": theirURL,
		"http://git.example.com:3000/a/b.git":                 "http://git.example.com:3000/a/b",
		"https://git/a":                                       "https://git/a",
		"ssh://git@github.com:22/Org/model.git":               theirURL,
		"git+ssh://git@github.com/Org/model":                  theirURL,
		"git://git.example.com/a.git":                         "https://git.example.com/a",
		"git@github.com:Org/model.git":                        theirURL,
		"github.com:Org/model":                                theirURL,
		"git@github.com:/Org/model.git":                       theirURL,
		"git@ssh.dev.azure.com:v3/org/project/model":          "https://ssh.dev.azure.com/v3/org/project/model",
		"git@work:Org/model.git":                              "", // a name in ~/.ssh/config
		"ssh://work/Org/model":                                "",
		"git@example.com:~me/model":                           "",
		"/srv/git/model.git":                                  "",
		"../model":                                            "",
		"file:///srv/git/model.git":                           "",
		`C:\git\model`:                                        "",
		"C:/git/model":                                        "",
		"https://":                                            "",
		"https:///Org/model":                                  "",
		"https://github.com":                                  "",
		"https://github.com/.git":                             "",
		"https://user/secret@github.com/Org/model":            "",
		"https://user:sec/ret@github.com/Org/model":           "",
		"us.er:secret@github.com:Org/model":                   "",
		"https://github.com/Org/mo del":                       "",
		"https://github.com/Org/model\nsecret":                "",
		"ext::sh -c secret":                                   "",
		"transport::https://secret@github.com/Org/model":      "",
		"javascript://github.com/%0aalert(1)":                 "",
		"":                                                    "",
		"/":                                                   "",
	}
	for remote := range addresses {
		got[remote] = checkout.Address(remote)
		if strings.Contains(got[remote], "secret") {
			t.Errorf("%q: the address %q has what is secret", remote, got[remote])
		}
	}
	if diff := cmp.Diff(addresses, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzAddress(f *testing.F) {
	for _, remote := range []string{"https://user:secret@github.com/Org/model.git?a#b", "git@github.com:Org/model", "ssh://git@h.io:22/a", `C:\a`} {
		f.Add(remote)
	}
	f.Fuzz(func(t *testing.T, remote string) {
		got := checkout.Address(remote)
		switch {
		case got == "":
		case strings.ContainsAny(got, "@?#\\ \n") || !strings.HasPrefix(got, "http"):
			t.Errorf("%q: got %q", remote, got)
		case checkout.Address(got) != got:
			t.Errorf("%q: got %q, whose own address is %q", remote, got, checkout.Address(got))
		}
	})
}
