package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// module is a Go module whose packages pass, skip, fail, panic and do not build.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26\n",
	"good/good_test.go": `package good

import (
	"fmt"
	"os"
	"testing"
)

func TestPass(t *testing.T) { t.Log("not of interest") }
func TestMissing(t *testing.T) {
	fmt.Print("a line without an end ")
	fmt.Fprintln(os.Stderr, "NOT CHECKED: TestMissing: no skopeo")
	t.Skip("no skopeo")
}
func TestTheirs(t *testing.T) {
	fmt.Fprintln(os.Stderr, "FOREIGN FILE: TestTheirs: x is not here")
	t.Skip("x is not here")
}
func TestSkip(t *testing.T) { t.Skip("for no reason") }
func TestPassButMissing(t *testing.T) { fmt.Println("NOT CHECKED: half of it") }
`,
	"bad/bad_test.go": `package bad

import "testing"

func TestPass(t *testing.T) { t.Log("not of interest") }
func TestFail(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("got 1, want 2") }) }
`,
	"panics/panics_test.go": `package panics

import "testing"

func TestPanic(t *testing.T) { t.Log("just before"); panic("boom") }
`,
	"broken/broken_test.go": "package broken\n\nvar x int = \"\"\n",
	"none/none.go":          "package none\n",
}

// inFiles writes the module's files to a folder.
func inFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range module {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhatIsPrinted(t *testing.T) {
	testenv.Heavy(t) // compiles, again and again
	dir := inFiles(t)
	tests := []struct {
		pkg     string
		code    int
		want    []string
		wantNot []string
	}{
		{
			pkg: "good",
			want: []string{
				"\nNOT CHECKED: TestMissing: no skopeo\n", "--- SKIP: TestSkip", "for no reason",
				"NOT CHECKED: half of it\n", "ok  \texample.com/m/good",
				"\n1 test reads files of other programs, which are not in the repository and not here: CARTON_OCI_FIXTURES names their folder\n",
			},
			wantNot: []string{"--- SKIP: TestMissing", "--- SKIP: TestTheirs", "FOREIGN", "not of interest", "TestPass ", "=== RUN", "PASS"},
		},
		{
			pkg:     "bad",
			code:    1,
			want:    []string{"--- FAIL: TestFail", "--- FAIL: TestFail/sub", "got 1, want 2", "\nFAIL\texample.com/m/bad"},
			wantNot: []string{"not of interest", "=== RUN", "\nok "},
		},
		{pkg: "panics", code: 1, want: []string{"just before", "panic: boom", "\nFAIL\texample.com/m/panics"}},
		{pkg: "broken", code: 1, want: []string{"broken_test.go:3", "FAIL\texample.com/m/broken [build failed]"}},
		{pkg: "none", want: []string{"?   \texample.com/m/none\t[no test files]"}},
	}
	for _, tt := range tests {
		t.Run(tt.pkg, func(t *testing.T) {
			out, code := gotest(t, dir, "./"+tt.pkg)
			if code != tt.code {
				t.Errorf("exit code: got %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains("\n"+out, want) {
					t.Errorf("%q is not printed", want)
				}
			}
			for _, not := range tt.wantNot {
				if strings.Contains("\n"+out, not) {
					t.Errorf("%q is printed", not)
				}
			}
			if t.Failed() {
				t.Logf("printed:\n%s", out)
			}
		})
	}
}

// gotest runs this program as make does, and returns its output and exit code.
func gotest(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GOTEST_MAIN=1", "GOFLAGS=", "GOWORK=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	testenv.Emulated(t, err)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestMain(m *testing.M) {
	if os.Getenv("GOTEST_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestForeignLinesAreKept(t *testing.T) {
	var out bytes.Buffer
	in := "go: downloading example.com v1.0.0\n{\"Action\":\"output\",\"Package\":\"p\",\"Output\":\"ok  \\tp\\t0.1s\\n\"}\n" +
		"{\"Action\":\"pass\",\"Package\":\"p\"}\nno newline"
	if err := newResults(&out).filter(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "go: downloading example.com v1.0.0\nok  \tp\t0.1s\nno newline"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Outcomes are found by the package's folder, as the list of cases names it.
func TestOutcomesByFolder(t *testing.T) {
	for pkg, folder := range map[string]string{
		modulePath:                 ".",
		modulePath + "/e2e":        "e2e",
		modulePath + "/pkg/carton": "pkg/carton",
	} {
		res := newResults(io.Discard)
		if err := res.filter(strings.NewReader(`{"Action":"pass","Package":"` + pkg + `","Test":"TestA"}` + "\n")); err != nil {
			t.Fatal(err)
		}
		if got := res.outcomes[folder]["TestA"]; got != "pass" {
			t.Errorf("%s: got %v, want it under %s", pkg, res.outcomes, folder)
		}
	}
}

// Several runs of go test have one summary, and all of them are made.
func TestSeveralRuns(t *testing.T) {
	testenv.Heavy(t) // compiles; TestRunsBesideOthers does, too
	dir := inFiles(t)
	out, code := gotest(t, dir, "./bad", "--", "-C", dir, "./good")
	if code != 1 || !strings.Contains(out, "FAIL\texample.com/m/bad") || !strings.Contains(out, "ok  \texample.com/m/good") ||
		strings.Count(out, "CARTON_OCI_FIXTURES") != 1 {
		t.Errorf("got exit code %d and\n%s", code, out)
	}
}

// Runs that are made side by side have one summary too, and each its own that follow.
func TestRunsBesideOthers(t *testing.T) {
	dir := inFiles(t)
	out, code := gotest(t, dir, "./good", "--", "-C", dir, "./none", "--beside", "-C", dir, "./panics", "--", "-C", dir, "./bad")
	for _, want := range []string{
		"ok  \texample.com/m/good", "?   \texample.com/m/none\t[no test files]", "FAIL\texample.com/m/panics", "FAIL\texample.com/m/bad",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not printed", want)
		}
	}
	if code != 1 || strings.Count(out, "CARTON_OCI_FIXTURES") != 1 {
		t.Errorf("got exit code %d and\n%s", code, out)
	}
}

func TestWhatIsRunning(t *testing.T) {
	r, now := newRunning(), time.Unix(1000, 0)
	if got, want := r.String(now), "… compiling\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, e := range []event{
		{Action: "start", Package: modulePath + "/pkg/registry"},
		{Action: "run", Package: modulePath + "/pkg/registry", Test: "TestA"},
		{Action: "run", Package: modulePath + "/pkg/registry", Test: "TestB"},
		{Action: "run", Package: modulePath + "/pkg/registry", Test: "TestB/sub"},
		{Action: "start", Package: "p"},
		{Action: "pass", Package: modulePath + "/pkg/registry", Test: "TestA"},
		{Action: "start", Package: "q"},
		{Action: "pass", Package: "q"},
	} {
		r.take(e, now.Add(time.Duration(i)*time.Second))
	}
	if got, want := r.String(now.Add(time.Minute)), "… pkg/registry for 60 s, in TestB\n… p for 56 s\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
