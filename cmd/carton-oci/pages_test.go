package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

func TestCommandsPageIsCurrent(t *testing.T) {
	name := filepath.Join(testenv.Root(), "docs", "commands.md")
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
	if string(got) != commandsPage(app) {
		t.Errorf("%s is not what --help says: run make docs", name)
	}
}

// Two runs make the same man pages, one for each command, with every flag; they hold
// no date unless SOURCE_DATE_EPOCH gives one.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	for _, dir := range dirs {
		if err := writeMan(app, dir); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"carton-oci.1"}
	for _, cmd := range app.Commands {
		names = append(names, "carton-oci-"+cmd.Name+".1")
	}
	for _, name := range names {
		a, errA := os.ReadFile(filepath.Join(dirs[0], name))
		b, errB := os.ReadFile(filepath.Join(dirs[1], name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: got two that differ, or none: %v, %v", name, errA, errB)
		}
		if !strings.HasPrefix(string(a), `.TH "CARTON\-OCI`) || !strings.Contains(string(a), `" "1" "" "carton`) {
			t.Errorf("%s: got %.80s, want no date", name, a)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if err := writeMan(app, dirs[0]); err != nil {
		t.Fatal(err)
	}
	if a, _ := os.ReadFile(filepath.Join(dirs[0], names[0])); !strings.Contains(string(a), `" "1" "1970-01-02" "`) {
		t.Errorf("got %.80s, want the date of SOURCE_DATE_EPOCH", a)
	}
	checkMan(t, dirs[0], names)
}

// checkMan asks programs that read man pages what they think.
func checkMan(t *testing.T, dir string, names []string) {
	t.Helper()
	if program, err := exec.LookPath("mandoc"); err == nil {
		// The pages' own name, in lower case, is what other programs' pages have too.
		cmd := exec.Command(program, append([]string{"-T", "lint", "-W", "style"}, names...)...)
		cmd.Dir = dir
		if out, _ := cmd.CombinedOutput(); len(out) > 0 {
			t.Errorf("mandoc -T lint: %s", out)
		}
	}
	program := testenv.Program(t, "man")
	for _, name := range names {
		cmd := exec.Command(program, "--warnings", "-l", name)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "MANPAGER=cat", "MANWIDTH=80", "LC_ALL=C.UTF-8")
		var says bytes.Buffer
		cmd.Stderr = &says
		if out, err := cmd.Output(); err != nil || says.Len() > 0 || !bytes.Contains(out, []byte("NAME")) {
			t.Errorf("man -l %s: %v %s", name, err, says.Bytes())
		}
	}
}

func TestBlocks(t *testing.T) {
	got := blocks("one\ntwo\n  as\n    is\n  so\n\nthree")
	want := []block{{[]string{"one", "two"}, false}, {[]string{"as", "  is", "so"}, true}, {[]string{"three"}, false}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if strings.Join(got[i].lines, "\n") != strings.Join(want[i].lines, "\n") || got[i].asIs != want[i].asIs {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

func TestWrapped(t *testing.T) {
	if got, want := wrapped("one two  three", 2, 9), "one two\n  three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := wrapped("verylongword x", 2, 5), "verylongword\n  x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		".hidden": `\&.hidden`, "'*.bias'": `\(aq*.bias\(aq`, "--all": `\-\-all`, `a\b`: `a\eb`,
	} {
		if got := roff(in); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
