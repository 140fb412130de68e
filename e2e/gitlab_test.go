package e2e

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: the job of the GitLab component does what docs/ci.md says. Its script
// is run as it is, by a plain shell, with the variables that GitLab sets.

// component is templates/push.yml: two documents.
type component struct {
	Spec struct {
		Inputs map[string]struct{ Default any }
	}
	job map[string]struct {
		Variables map[string]string
		Script    []string
		Artifacts struct {
			Reports struct{ Dotenv string }
		}
	}
}

var interpolation = regexp.MustCompile(`\$\[\[ *inputs\.([a-z-]+) *\]\]`)

// readComponent fills in the inputs, as GitLab does before it looks at the job: in
// keys and values, not in the file.
func readComponent(t *testing.T, inputs map[string]string) *component {
	t.Helper()
	raw := []byte(read(t, filepath.Join(testenv.Root(), "templates", "push.yml")))
	var c component
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var job yaml.Node
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&job); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(new(any)); err != io.EOF { //nolint:errorlint // the end itself
		t.Fatalf("want two documents, got %v", err)
	}
	var fill func(n *yaml.Node)
	fill = func(n *yaml.Node) {
		if strings.Contains(n.Value, "$[[") && strings.Contains(n.Value, "\n") {
			t.Errorf("an input is interpolated into a script:\n%s", n.Value)
		}
		n.Value = interpolation.ReplaceAllStringFunc(n.Value, func(e string) string {
			name := interpolation.FindStringSubmatch(e)[1]
			in, known := c.Spec.Inputs[name]
			value, given := inputs[name]
			switch {
			case !known:
				t.Errorf("there is no input %s", name)
			case !given && in.Default == nil && name != "source":
				t.Errorf("input %s has no default", name)
			case !given:
				value = strings.TrimSpace(strings.Trim(yamlText(t, in.Default), "\"\n"))
			}
			return value
		})
		for _, child := range n.Content {
			fill(child)
		}
	}
	fill(&job)
	if err := job.Decode(&c.job); err != nil {
		t.Fatal(err)
	}
	return &c
}

func yamlText(t *testing.T, v any) string {
	t.Helper()
	raw, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// run runs the job, and returns the variables that later jobs get.
func (c *component) run(t *testing.T, u *user, env ...string) (result, map[string]string) {
	t.Helper()
	job := c.job["push-carton"]
	env = append([]string{"GITLAB_CI=true", "CI_COMMIT_SHA=" + strings.Repeat("ab", 20), "CI_PROJECT_URL=https://gitlab.example.com/g/model"}, env...)
	for name, value := range job.Variables {
		env = append(env, name+"="+value)
	}
	r := u.with(env...).exec(t, shellOf(t), "-e", "-c", strings.Join(job.Script, "\n"))
	if r.code != 0 {
		return r, nil
	}
	return r, keyValues(t, u.path(job.Artifacts.Reports.Dotenv))
}

func TestGitLabComponent(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	env, url, _ := releases(t, nil)
	env = append(env, "CI_REGISTRY="+s.Host, "CI_REGISTRY_USER=ada", "CI_REGISTRY_PASSWORD=lovelace")
	u := newUser(t)
	one := newModel(map[string]string{"model/weights.bin": "weights"})
	one.write(t, u.path("m.carton"))
	ref := s.Host + "/g/model:1.0"
	inputs := map[string]string{"source": "m.carton", "reference": ref + ",latest", "image": "true", "flags": "--no-clobber --layers=tar", "download-url": url}
	r, got := readComponent(t, inputs).run(t, u, env...)
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for name, want := range map[string]string{
		"CARTON_REFERENCE": ref, "CARTON_MODEL_HASH": one.hash(),
		"CARTON_DIGEST":       strings.TrimSpace(u.must(t, "resolve", ref).stdout),
		"CARTON_IMAGE_DIGEST": strings.TrimSpace(u.must(t, "resolve", ref+"-image").stdout),
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	if m := manifestOf(t, u, ref); m["org.opencontainers.image.source"] != "https://gitlab.example.com/g/model" {
		t.Errorf("got the annotations %v, want the project's address", m)
	}
}

func TestGitLabComponentRefuses(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	good, url, _ := releases(t, nil)
	damaged, damagedURL, _ := releases(t, func(name string, b []byte) []byte {
		if name != "checksums.txt" {
			b[len(b)/2] ^= 1
		}
		return b
	})
	const evil = "x\"; touch pwned; $(touch pwned) `touch pwned` *"
	for name, tt := range map[string]struct {
		env    []string
		inputs map[string]string
		says   string
	}{
		"a damaged archive": {damaged, map[string]string{"download-url": damagedURL}, "it is not installed"},
		"no such release":   {good, map[string]string{"version": "9.9.9"}, "404"},
		"no password":       {good, nil, "401"},
		"an evil source":    {good, map[string]string{"source": evil}, "x"},
		"an evil reference": {good, map[string]string{"reference": evil}, "x"},
		"an evil version":   {good, map[string]string{"version": evil}, "curl: (3)"},
		"evil flags":        {good, map[string]string{"flags": evil}, "arguments, want SOURCE"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			u := newUser(t)
			newModel(map[string]string{"model/weights.bin": "weights"}).write(t, u.path("m.carton"))
			inputs := map[string]string{"source": "m.carton", "reference": s.Host + "/g/model:1", "download-url": url}
			for name, value := range tt.inputs {
				inputs[name] = value
			}
			r, _ := readComponent(t, inputs).run(t, u, tt.env...)
			if r.code == 0 || !strings.Contains(r.stdout+r.stderr, tt.says) {
				t.Errorf("got exit code %d, want an error with %q\n%s%s", r.code, tt.says, r.stdout, r.stderr)
			}
			if _, err := os.Stat(u.path("pwned")); err == nil {
				t.Error("an input was run")
			}
		})
	}
}
