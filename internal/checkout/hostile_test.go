package checkout_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/checkout"
)

// TestNothingOfTheCheckoutRuns: a checkout that was unpacked with its .git names programs
// in every place where git looks for some. None of them runs, and what was changed is told.
func TestNothingOfTheCheckoutRuns(t *testing.T) {
	const address = "https://github.com/org/model"
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+ran+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	part := newRepository(t, address)
	part.commit()
	r := newRepository(t, address)
	r.git("submodule", "--quiet", "add", part.dir, "part")
	commit := r.commit()
	inner := repository{t, filepath.Join(r.dir, "part")}
	for _, x := range []repository{r, inner} {
		for _, name := range []string{
			"core.fsmonitor", "filter.evil.clean", "filter.a=b.clean", "diff.external", "diff.evil.textconv", "core.sshCommand",
		} {
			x.git("config", name, program)
		}
		info := x.git("rev-parse", "--path-format=absolute", "--git-path", "info")
		hooks := x.git("rev-parse", "--path-format=absolute", "--git-path", "hooks")
		for _, dir := range []string{info, hooks} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(program, filepath.Join(hooks, "post-index-change")); err != nil {
			t.Fatal(err)
		}
		attributes := []byte("file filter=evil diff=evil\nother filter=a=b\n")
		if err := os.WriteFile(filepath.Join(info, "attributes"), attributes, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	later := func() { // of another time, and with the same content
		t.Helper()
		for _, x := range []repository{r, inner} {
			at := time.Now().Add(time.Hour)
			if err := os.Chtimes(filepath.Join(x.dir, "file"), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	quiet := func() {
		t.Helper()
		if _, err := os.Lstat(ran); err == nil {
			t.Error("a program that the checkout names was run")
		}
	}
	later()
	want(t, read(t, r.dir, nil), commit, address)
	quiet()
	inner.write("file", "changed")
	want(t, read(t, r.dir, nil), commit+"-dirty", address, "are changed")
	quiet()
}

// TestAFolderThatLooksLikeARepository: what a clone holds is the clone's, and no
// repository of its own with settings.
func TestAFolderThatLooksLikeARepository(t *testing.T) {
	r := newRepository(t, "")
	r.commit()
	bare := filepath.Join(t.TempDir(), "bare")
	r.git("clone", "-q", "--bare", r.dir, bare)
	if s, err := checkout.Read(t.Context(), bare, env{}.get); err == nil {
		t.Errorf("got %+v, want an error", s)
	}
}
