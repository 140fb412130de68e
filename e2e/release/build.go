package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is a clone of one commit.
type source struct {
	dir    string
	commit string
	time   time.Time // the commit's
}

// clone makes a clone of a checkout's HEAD that has one tag and no changes.
func clone(ctx context.Context, repository, dir, tag string) (*source, error) {
	s := &source{dir: dir}
	var err error
	if s.commit, err = git(ctx, repository, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if tagged, err := git(ctx, repository, "rev-parse", "--verify", "--quiet",
		"refs/tags/"+tag+"^{commit}"); err == nil && tagged != s.commit {
		return nil, fmt.Errorf("the tag %s is on commit %s, and HEAD is %s: check the tag out", tag, tagged, s.commit)
	}
	if _, err := git(ctx, repository, "clone", "--quiet", "--no-tags", repository, dir); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", s.commit},
		{"-c", "tag.gpgSign=false", "tag", tag},
	} {
		if _, err := git(ctx, dir, args...); err != nil {
			return nil, err
		}
	}
	s.time, err = timeOf(ctx, dir)
	return s, err
}

// timeOf returns when the commit was made that a checkout is at.
func timeOf(ctx context.Context, dir string) (time.Time, error) {
	seconds, err := git(ctx, dir, "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time of the commit of %s: %w", dir, err)
	}
	return time.Unix(n, 0).UTC(), nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...))
}

// output runs a command and returns what it prints, trimmed; its error has what the
// command says is wrong.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// build builds the program for a platform, and returns its path. What a user's
// environment might add is set to what the go command does by itself.
func (r *release) build(ctx context.Context, p platform, work string) (string, error) {
	binary := filepath.Join(work, p.os+"_"+p.arch, program)
	if p.os == "windows" {
		binary += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", binary,
		"./cmd/"+program)
	cmd.Dir = r.source.dir
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	if r.goCache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+r.goCache)
	}
	if _, err := output(cmd); err != nil {
		return "", fmt.Errorf("build for %s: %w", p, err)
	}
	return binary, nil
}
