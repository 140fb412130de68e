package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/program"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: workflows are what GitHub takes, ask for what the action and the
// Makefile have, and run no code of others that may change under them.

var actionlint = program.Set{Name: "actionlint", Module: "github.com/rhysd/actionlint", Version: "v1.7.12", Packages: []string{"github.com/rhysd/actionlint/cmd/actionlint"}}

type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

// workflows are the project's own, and the example.
func workflows(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(testenv.Root(), ".github", "workflows", "*.yml"))
	if err != nil || len(names) < 2 {
		t.Fatalf("got %v, %v, want ci.yml and release.yml", names, err)
	}
	return append(names, example("ci/release.yml"))
}

func TestWorkflows(t *testing.T) {
	lint := filepath.Join(actionlint.Build(t), "actionlint")
	if out, err := exec.Command(lint, append([]string{"-no-color"}, workflows(t)...)...).CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	targets := regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
	makefile := read(t, filepath.Join(testenv.Root(), "Makefile"))
	inputs := newRunner(t, nil).Inputs
	var subjects []string
	for _, name := range workflows(t) {
		var w workflow
		readYAML(t, name, &w)
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				ours := strings.HasPrefix(step.Uses, "carton-oci/carton-oci@v")
				if step.Uses != "" && !ours && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: %s is not named by its commit", name, step.Uses)
				}
				for with := range step.With {
					if _, known := inputs[with]; ours && !known {
						t.Errorf("%s: the action has no input %s", name, with)
					}
				}
				if strings.HasPrefix(step.Uses, "actions/attest@") && name == example("ci/release.yml") {
					subjects = append(subjects, step.With["subject-digest"])
				}
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: an expression stands in a script:\n%s", name, step.Run)
				}
				for _, m := range targets.FindAllStringSubmatch(step.Run, -1) {
					if !strings.Contains(makefile, "\n"+m[1]+":") {
						t.Errorf("%s: there is no make %s", name, m[1])
					}
				}
			}
		}
	}
	if want := []string{"${{ steps.push.outputs.digest }}", "${{ steps.push.outputs.image-digest }}"}; !slices.Equal(subjects, want) {
		t.Errorf("the example attests %v, want %v", subjects, want)
	}
}

// One version is installed by the action, the component and the examples: the one
// that CHANGELOG.md begins with.
func TestTheVersionThatIsNamed(t *testing.T) {
	m := regexp.MustCompile(`(?m)^## \[([0-9.]+)\]`).FindStringSubmatch(read(t, filepath.Join(testenv.Root(), "CHANGELOG.md")))
	if m == nil {
		t.Fatal("CHANGELOG.md names no version")
	}
	for name, want := range map[string]string{
		"action.yml": "default: v" + m[1] + "\n", "templates/push.yml": "default: " + m[1] + "\n",
		"examples/ci/release.yml": "carton-oci/carton-oci@v" + m[1] + "\n", "examples/ci/gitlab-ci.yml": "carton-oci/push@" + m[1] + "\n",
		"examples/kubernetes/unpack.yaml": "carton-oci/carton-oci:" + m[1] + "\n", "docs/ci.md": "carton-oci/carton-oci@v" + m[1] + "\n",
		"Makefile": "VERSION ?= v" + m[1] + "\n", "README.md": "version=" + m[1] + "\n",
	} {
		if !strings.Contains(read(t, filepath.Join(testenv.Root(), filepath.FromSlash(name))), want) {
			t.Errorf("%s does not say %q", name, strings.TrimSpace(want))
		}
	}
}

func TestScriptsAreClean(t *testing.T) {
	shellcheck := testenv.Program(t, "shellcheck")
	names := []string{"examples/ci/release.sh", "examples/quickstart/run.sh", ".ci/run"}
	for _, pattern := range []string{"action/*.sh"} {
		found, err := filepath.Glob(filepath.Join(testenv.Root(), filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		for _, name := range found {
			rel, _ := filepath.Rel(testenv.Root(), name)
			names = append(names, rel)
		}
	}
	component := readComponent(t, map[string]string{"source": "m.carton"})
	script := filepath.Join(t.TempDir(), "component.sh")
	text := "#!/bin/sh\n# shellcheck disable=SC2086 # flags are words\n" + strings.Join(component.job["push-carton"].Script, "\n")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, script) {
		cmd := exec.Command(shellcheck, "-x", name)
		cmd.Dir = testenv.Root()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
