package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: the action's steps do what action.yml says, and nothing else that
// somebody writes into an input.

const goArch = runtime.GOARCH

var runnerArch = map[string]string{"amd64": "X64", "arm64": "ARM64"}[goArch]

func TestAction(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	env, url, _ := releases(t, nil)
	u := newUser(t)
	r := newRunner(t, u, env...)
	one := newModel(map[string]string{"model/weights.bin": random("one", 100<<10)})
	one.write(t, u.path("m.carton"))
	inputs := map[string]string{
		"source": "m.carton", "reference": s.Host + "/Org/Model:1.0,Latest", "image": "true", "flags": "\n--layers=tar\n\n",
		"username": "ada", "password": "lovelace", "download-url": url,
	}
	first, ok := r.run(t, inputs)
	if !ok {
		t.Fatalf("%s%s", r.stdout, r.stderr)
	}
	repository := s.Host + "/org/model"
	for name, want := range map[string]string{
		"reference": repository + ":1.0", "repository": repository, "model-hash": one.hash(), "changed": "true", "path": "",
		"digest":       strings.TrimSpace(u.must(t, "resolve", repository+":Latest").stdout),
		"image-digest": strings.TrimSpace(u.must(t, "resolve", repository+":1.0-image").stdout),
	} {
		if first[name] != want {
			t.Errorf("output %s: got %q, want %q", name, first[name], want)
		}
		if want != "" && !strings.Contains(r.summary, "| "+name+" | `"+want+"` |\n") {
			t.Errorf("the summary does not tell %s:\n%s", name, r.summary)
		}
	}
	if !strings.Contains(r.summary, "carton-oci pull "+repository+"@"+first["digest"]+"\n") {
		t.Errorf("the summary does not say how to pull:\n%s", r.summary)
	}
	m := manifestOf(t, u, repository+":1.0")
	for key, want := range map[string]string{
		"org.opencontainers.image.source": "https://github.com/Org/Model", "org.opencontainers.image.revision": "0123456789abcdef0123456789abcdef01234567",
	} {
		if m[key] != want {
			t.Errorf("annotation %s: got %q, want %q", key, m[key], want)
		}
	}

	s.Traffic.Reset()
	again, ok := r.run(t, inputs)
	if !ok || again["changed"] != "false" || again["digest"] != first["digest"] || s.Traffic.BlobBytesIn() != 0 {
		t.Errorf("again: got %v, %v and %d bytes sent, want no change\n%s", again, ok, s.Traffic.BlobBytesIn(), r.stderr)
	}
	inputs["reference"] += ",new"
	if more, ok := r.run(t, inputs); !ok || more["changed"] != "true" {
		t.Errorf("one more tag: got %v, %v, want a change\n%s", more, ok, r.stderr)
	}
	if everything := r.stdout + r.stderr + r.summary; strings.Contains(everything, "lovelace") || strings.Contains(everything, jobToken) {
		t.Errorf("a password is shown:\n%s", everything)
	}
}

// manifestOf returns the annotations of an artifact.
func manifestOf(t *testing.T, u *user, ref string) map[string]string {
	t.Helper()
	u.must(t, "push", ref, "oci:"+u.path("manifest")+":1")
	var m struct{ Annotations map[string]string }
	digest := strings.TrimSpace(u.must(t, "resolve", ref).stdout)
	readYAML(t, filepath.Join(u.path("manifest"), "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), &m)
	return m.Annotations
}

func TestActionPacks(t *testing.T) {
	env, url, sums := releases(t, nil)
	u := newUser(t)
	writeFile(t, u.path("weights.bin"), "weights")
	for _, platform := range []string{"Linux", "Windows"} {
		archive := map[string]string{"Linux": "linux_" + goArch + ".tar.gz", "Windows": "windows_" + goArch + ".zip"}[platform]
		inputs := map[string]string{"source": "weights.bin", "output": platform + ".carton", "flags": "--runner=noop\r\n--name=A name; touch pwned", "download-url": url}
		for name, sum := range sums {
			if strings.HasSuffix(name, archive) {
				inputs["checksum"] = sum
			}
		}
		r := newRunner(t, u, append(env, "RUNNER_OS="+platform)...)
		out, ok := r.run(t, inputs)
		if !ok || out["path"] != platform+".carton" || len(out["model-hash"]) != 64 || out["digest"] != "" {
			t.Fatalf("%s: got %v, %v\n%s%s", platform, out, ok, r.stdout, r.stderr)
		}
		if toml := u.must(t, "cat", platform+".carton", "carton.toml").stdout; !strings.Contains(toml, `"A name; touch pwned"`) {
			t.Errorf("%s: a flag with spaces did not arrive:\n%s", platform, toml)
		}
	}
	onlyThese(t, u.dir, "Linux.carton", "Windows.carton", "weights.bin")
}

// A line that a runner takes for a command of its own, other than the error.
var runnerCommand = regexp.MustCompile(`(?m)^::[a-z]|^##\[`)

func TestActionRefuses(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	good, url, _ := releases(t, nil)
	damaged, damagedURL, _ := releases(t, func(name string, b []byte) []byte {
		if name != "checksums.txt" {
			b[len(b)/2] ^= 1
		}
		return b
	})
	unlisted, unlistedURL, _ := releases(t, func(name string, b []byte) []byte {
		if name == "checksums.txt" {
			return []byte(strings.Repeat("0", 64) + "  carton-oci_9.9.9_linux_amd64.tar.gz\n")
		}
		return b
	})
	zeros := strings.Repeat("0", 64)
	const evil = "x\"; touch pwned; $(touch pwned) `touch pwned`\n::set-env name=PATH::/evil\n::error::forged"
	for name, tt := range map[string]struct {
		env    []string
		inputs map[string]string
		says   string
	}{
		"a damaged archive":      {damaged, map[string]string{"download-url": damagedURL}, "it is not installed"},
		"an unlisted archive":    {unlisted, map[string]string{"download-url": unlistedURL}, "got no sha256 of carton-oci_"},
		"another checksum":       {good, map[string]string{"checksum": zeros}, "want " + zeros + ": it is not installed"},
		"no checksum":            {good, map[string]string{"checksum": "*"}, "got no sha256 of carton-oci_"},
		"no such release":        {good, map[string]string{"version": "v9.9.9"}, "release v9.9.9 can't be downloaded"},
		"no version":             {good, map[string]string{"version": "latest"}, "want one such as v0.1.0"},
		"an evil version":        {good, map[string]string{"version": "v0.1.0/" + evil}, "want one such as v0.1.0"},
		"a download without TLS": {good, map[string]string{"download-url": "http://127.0.0.1:1/"}, "can't be downloaded"},
		"another system":         {append([]string{"RUNNER_OS=BeOS"}, good...), nil, "there is no release for BeOS"},
		"another processor":      {append([]string{"RUNNER_ARCH=ARM"}, good...), nil, "there is no release for ARM"},
		"no source":              {nil, map[string]string{"source": ""}, "source is missing"},
		"no reference":           {nil, map[string]string{"reference": ""}, "reference is missing"},
		"reference and output":   {nil, map[string]string{"output": "o.carton"}, "want one of them"},
		"no file":                {nil, map[string]string{"source": "--help"}, "--help"},
		"an evil source":         {nil, map[string]string{"source": evil}, "invalid reference"},
		"an evil reference":      {nil, map[string]string{"reference": s.Host + "/" + evil}, "invalid reference"},
		"an evil output":         {nil, map[string]string{"reference": "", "output": "none/" + evil}, "is a carton already"},
		"an evil flag":           {nil, map[string]string{"flags": evil}, "got 5 arguments"},
		"an evil user":           {nil, map[string]string{"username": evil}, "401"},
		"a tag with a plus":      {nil, map[string]string{"reference": s.Host + "/org/m:1.0+cu118"}, "1.0_cu118"},
		"no boolean":             {nil, map[string]string{"image": "yes" + evil}, "want true or false"},
		"no user":                {nil, map[string]string{"username": ""}, "no username"},
		"no password":            {nil, map[string]string{"password": ""}, "no password"},
		"another password":       {nil, map[string]string{"password": "byron"}, "401"},
		"nobody":                 {nil, map[string]string{"username": "", "password": ""}, "401"}, // the job's token is ghcr.io's
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			u := newUser(t)
			newModel(map[string]string{"model/weights.bin": "weights"}).write(t, u.path("m.carton"))
			inputs := map[string]string{"source": "m.carton", "reference": s.Host + "/org/m:1", "username": "ada", "password": "lovelace", "download-url": url}
			for name, value := range tt.inputs {
				inputs[name] = value
			}
			r := newRunner(t, u, tt.env...)
			if tt.env == nil {
				r.installed = filepath.Dir(cartonOCI)
			}
			if out, ok := r.run(t, inputs); ok {
				t.Fatalf("want a refusal, got %v", out)
			}
			if !strings.Contains(r.stdout+r.stderr, tt.says) {
				t.Errorf("nothing says %q:\n%s%s", tt.says, r.stdout, r.stderr)
			}
			said := strings.Replace(r.stdout, "::error title=carton-oci::", "", 1)
			if runnerCommand.MatchString(said) || runnerCommand.MatchString(r.stderr) {
				t.Errorf("an input has given the runner a command:\n%s%s", r.stdout, r.stderr)
			}
			onlyThese(t, u.dir, "m.carton")
			if config, err := os.ReadFile(filepath.Join(u.home, ".docker", "config.json")); err == nil && strings.Contains(string(config), "b2N0b2NhdD") {
				t.Errorf("the job's token was kept for another registry: %s", config)
			}
		})
	}
}
