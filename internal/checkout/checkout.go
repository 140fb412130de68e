// Package checkout tells which commit of which repository something is made of: of
// the git checkout that a folder is in, or of the CI job that runs.
//
// # Rules that this package keeps
//
// The checkout is asked first, through git itself: worktrees, submodules, detached
// heads and any storage of references are its business. What it doesn't tell, the
// variables of GitHub's and GitLab's runners do, which other systems set alike; the
// repository only where they name the commit that is checked out.
//
// A revision is a commit's full hash. Where files of that commit have been changed,
// "-dirty" follows, as docker buildx and git describe write it. Files that git
// does not know count for nothing: a model is often one of them.
//
// An address is one that a browser opens: https, or http where the checkout says
// so, without user, password, query and the ending ".git". What git reaches through
// ssh becomes https. A folder of this machine, or a host without a dot reached
// through ssh (most likely a name of the user's ssh config), has no address.
package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// Source is what something is made of.
type Source struct {
	// Revision is the commit, followed by "-dirty" where its files were changed.
	Revision string
	// URL is the repository's address, "" where it has none for others.
	URL string
	// Warnings say what is odd about either.
	Warnings []string
}

// patience is how long git may take: it reads no more than the files of a checkout
// that look changed.
const patience = time.Minute

var revisionRE = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Read tells the source of what is made in the folder dir. getenv is os.Getenv.
func Read(ctx context.Context, dir string, getenv func(string) string) (*Source, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	job := ofJob(getenv)
	s, err := ofGit(ctx, dir)
	switch {
	case err == nil && s.URL == "" && (job == nil || strings.TrimSuffix(s.Revision, dirty) != job.Revision):
		s.warnf("the git checkout has no remote with an address for others: no repository is named")
		return s, nil
	case err == nil:
		if s.URL == "" {
			s.URL = job.URL
		}
		return s, nil
	case job == nil || ctx.Err() != nil:
		return nil, err
	}
	if !errors.Is(err, errNoCheckout) {
		job.warnf("%v: the CI job's commit is taken", err)
	}
	return job, nil
}

func (s *Source) warnf(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// ofJob is what the variables of a CI job say, nil where there is none.
// https://docs.github.com/en/actions/reference/workflows-and-actions/variables
// https://docs.gitlab.com/ci/variables/predefined_variables/
func ofJob(getenv func(string) string) *Source {
	var s Source
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		s.Revision = getenv("GITHUB_SHA")
		s.URL = getenv("GITHUB_SERVER_URL") + "/" + getenv("GITHUB_REPOSITORY")
	case getenv("GITLAB_CI") == "true":
		s.Revision, s.URL = getenv("CI_COMMIT_SHA"), getenv("CI_PROJECT_URL")
	}
	if s.URL = Address(s.URL); !revisionRE.MatchString(s.Revision) {
		return nil
	}
	return &s
}

// errNoCheckout is of a folder that is in no checkout, or a machine without git.
var errNoCheckout = errors.New("no git checkout")

const dirty = "-dirty"

func ofGit(ctx context.Context, dir string) (*Source, error) {
	revision, err := git(ctx, dir, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return nil, noRevision(err)
	}
	if !revisionRE.MatchString(revision) {
		return nil, fmt.Errorf("git calls the commit %q, want its hash", revision)
	}
	s := &Source{Revision: revision}
	var exit *exec.ExitError
	switch err := unchanged(ctx, cmp.Or(dir, "."), 0); {
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		s.Revision += dirty
		s.warnf("files of commit %s are changed in the checkout: the revision ends in %s", revision[:12], dirty)
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		s.warnf("git can't tell whether files are changed: %s", said(err))
	}
	if remote := remoteOf(ctx, dir); remote != "" {
		s.URL = Address(remote)
	}
	return s, nil
}

// noRevision says why there is no commit.
func noRevision(err error) error {
	text := said(err)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		err = fmt.Errorf("%w is seen: git is not installed", errNoCheckout)
	case strings.Contains(text, "not a git repository"):
		err = fmt.Errorf("%w: this folder is in none, and no CI job names a commit", errNoCheckout)
	case strings.Contains(text, "Needed a single revision"):
		err = errors.New("the git checkout has no commit yet")
	case text != "":
		err = errors.New("git refuses: " + text)
	}
	return err
}

// remoteOf returns where the checkout comes from: origin, or else its only remote.
func remoteOf(ctx context.Context, dir string) string {
	if address, err := git(ctx, dir, "remote", "get-url", "origin"); err == nil {
		return address
	}
	names, err := git(ctx, dir, "remote")
	if err != nil || names == "" || strings.Contains(names, "\n") {
		return ""
	}
	address, _ := git(ctx, dir, "remote", "get-url", names)
	return address
}

// gitError is an error with what git said.
type gitError struct {
	error
	text string
}

func (e *gitError) Unwrap() error { return e.error }

// said is the line in which git says what is wrong.
func said(err error) string {
	var e *gitError
	if !errors.As(err, &e) {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(e.text), "\n")
	return strings.TrimPrefix(line, "fatal: ")
}

// scpRE is git's short form of an address reached through ssh: a host of more than
// one letter, for one is a disk of Windows, and no slash before the colon.
var scpRE = regexp.MustCompile(`^(?:[^/@:]+@)?([^/@:\[\]]{2,}):/*([^/~].*)$`)

var hostRE = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?$`)

// Address makes an address for others of a remote's, "" where there is none.
func Address(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || !strings.Contains(remote, "://") {
		m := scpRE.FindStringSubmatch(remote)
		if m == nil || strings.Contains(remote, "://") {
			return ""
		}
		u = &url.URL{Scheme: "ssh", Host: m[1], Path: "/" + m[2]}
	}
	switch u.Scheme {
	case "http", "https":
	case "ssh", "git", "git+ssh", "ssh+git":
		u.Scheme, u.Host = "https", u.Hostname()
		if !strings.Contains(u.Host, ".") {
			return ""
		}
	default:
		return ""
	}
	host, path := strings.ToLower(u.Host), strings.TrimSuffix(strings.TrimRight(u.Path, "/"), ".git")
	if !hostRE.MatchString(host) || strings.Trim(path, "/") == "" || strings.ContainsFunc(path, inNoPath) {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: host, Path: path}).String()
}

// inNoPath says which characters no repository's path has. An @ is one: what stands
// before it may be a password that was not written as one has to.
func inNoPath(r rune) bool { return r <= ' ' || r == 0x7f || r == '@' || r == '\\' }
