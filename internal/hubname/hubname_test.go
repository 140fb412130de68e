package hubname

import (
	"strings"
	"testing"
)

func TestRepository(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt2": true, "org/name": true, "org/a.b-c_d": true, "_a/b_": true, "0/1": true, "resolve": true,
		"": false, "/a": false, "a/": false, "a/b/c": false, "a//b": false, "a/..": false, "../a": false, "a/b..c": false,
		"a/b--c": false, "a/-b": false, "a/b-": false, "a/.b": false, "a/b.": false, "a/b.git": false, "a/b c": false, "a/b?c": false,
		"a/é": false, "a/b\n": false, strings.Repeat("a", 97): false, strings.Repeat("a", 96): true, "a/b%2f": false, "a/b#c": false,
	} {
		if got := CheckRepository(name) == nil; got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func TestRevision(t *testing.T) {
	for name, want := range map[string]bool{
		"main": true, "refs/pr/1": true, "v1.0": true, strings.Repeat("a", 40): true, "a@b": true,
		"": false, "..": false, "a..b": false, "/a": false, "a/": false, "a b": false, "a:b": false, "a?b": false, "-a": false,
		"a\x00": false, "a\x1b[2J": false, "a@{1}": false, "a//b": false, "a.lock": false, strings.Repeat("a", 256): false, `a\b`: false,
	} {
		if got := CheckRevision(name) == nil; got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
	if !IsCommit(strings.Repeat("a", 40)) || IsCommit(strings.Repeat("A", 40)) || IsCommit("main") {
		t.Error("what is a commit is not told from what is none")
	}
}
