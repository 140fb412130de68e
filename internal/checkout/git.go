package checkout

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A checkout may be a stranger's, unpacked from an archive with its .git: what its
// settings name is not run, and neither are its hooks.
var noPrograms = []string{
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=" + os.DevNull,
	"-c", "safe.bareRepository=explicit", // a folder of a clone that looks like a .git
}

// empty is a variable for git that holds nothing.
const empty = "CARTON_OCI_EMPTY"

// git runs git without a network, questions, or programs that the checkout names.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{"-C", cmp.Or(dir, ".")}, noPrograms...), args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
		empty+"=", "GIT_ALLOW_PROTOCOL=none") // a git that does not know GIT_NO_LAZY_FETCH
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("git does not answer: %w", ctx.Err())
		}
		return "", &gitError{err, stderr.String()}
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// maxSubmodules is how deep submodules are in each other that are looked into.
const maxSubmodules = 8

// unchanged reports whether the files are those of the commit: exit code 1 of git says
// that they are not. Submodules are asked one by one, for each has settings of its own.
func unchanged(ctx context.Context, dir string, depth int) error {
	args, err := withoutFilters(ctx, dir)
	if err != nil {
		return err
	}
	args = append(args, "diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "HEAD")
	if _, err := git(ctx, dir, args...); err != nil {
		return err
	}
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	files, err := git(ctx, top, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	for _, file := range strings.Split(files, "\x00") {
		what, name, _ := strings.Cut(file, "\t")
		module := filepath.Join(top, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(module, ".git")); err != nil || !strings.HasPrefix(what, "160000 ") {
			continue // no submodule, or one that is not checked out
		}
		if depth == maxSubmodules {
			return fmt.Errorf("submodules are in each other over more than %d steps", maxSubmodules)
		}
		if err := unchanged(ctx, module, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// lfsFilters are what "git lfs install --local" writes.
var lfsFilters = map[string]bool{"git-lfs clean -- %f": true, "git-lfs filter-process": true}

// withoutFilters are the arguments for git not to run the filters that the checkout's
// own settings name. Those of the user and of the machine are theirs.
func withoutFilters(ctx context.Context, dir string) ([]string, error) {
	list, err := git(ctx, dir, "config", "--list", "--show-scope", "-z")
	if err != nil {
		return nil, err
	}
	var args []string
	for fields := strings.Split(list, "\x00"); len(fields) > 1; fields = fields[2:] {
		scope := fields[0]
		key, value, _ := strings.Cut(fields[1], "\n")
		program := strings.HasPrefix(key, "filter.") &&
			(strings.HasSuffix(key, ".clean") || strings.HasSuffix(key, ".process"))
		if theirs := scope == "local" || scope == "worktree"; program && theirs && !lfsFilters[value] {
			// the key may have an = in it, which -c takes for the end
			args = append(args, "--config-env="+key+"="+empty)
		}
	}
	return args, nil
}
