package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"go.yaml.in/yaml/v3"
)

// The promise: everything in examples/ works as it is.

func example(name string) string {
	return filepath.Join(testenv.Root(), "examples", filepath.FromSlash(name))
}

// onPath returns the user with the command on their path, and with Go, for
// examples that build something.
func (u *user) onPath(t *testing.T) *user {
	t.Helper()
	env := []string{"PATH=" + filepath.Dir(cartonOCI) + string(os.PathListSeparator) + os.Getenv("PATH"), "CARTON_OCI=" + cartonOCI}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Split(string(out), "\n")
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
		env = append(env, name+"="+values[i])
	}
	return u.with(env...)
}

var modelHashLine = regexp.MustCompile(`model hash ([0-9a-f]{64})`)

func TestQuickstart(t *testing.T) {
	for _, place := range []string{"a layout", "a registry"} {
		t.Run(place, func(t *testing.T) {
			u := newUser(t).onPath(t)
			args := []string{}
			s := testregistry.Start(t, testregistry.Options{})
			if place == "a registry" {
				args = append(args, s.Host+"/models/iris:1")
			}
			r := u.exec(t, example("quickstart/run.sh"), args...)
			if r.code != 0 {
				t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			m := modelHashLine.FindStringSubmatch(r.stdout)
			if m == nil {
				t.Fatalf("the model hash is not printed:\n%s", r.stdout)
			}
			hash := m[1]
			for _, want := range []string{
				"of 30 it never saw: 28 right", "model/iris.safetensors", "cmp back.carton again.carton",
				"carton-oci push model.carton ghcr.io/ORG/MODEL:1",
			} {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("%q is not printed", want)
				}
			}
			if got := strings.Count(r.stdout, hash); got < 3 {
				t.Errorf("the model hash is printed %d times, want it from training, verify and inspect", got)
			}
			if t.Failed() {
				t.Logf("printed:\n%s", r.stdout)
			}
			onlyThese(t, u.tmp)
			if place == "a registry" {
				predicts(t, u, s.Host+"/models/iris:1", hash)
			}
		})
	}
}

// predicts pulls the model as its reader says, and lets it name a flower.
func predicts(t *testing.T, u *user, ref, hash string) {
	t.Helper()
	python := testenv.Program(t, "python3")
	if got := u.pull(t, ref, "--unpack", "iris").ModelHash; got != hash {
		t.Errorf("got model hash %s, want %s as after training", got, hash)
	}
	program := `
import struct, sys
sys.path.insert(0, "iris/model")
import infer
model = infer.get_model()
flowers = open("iris/tensor_data/flowers.bin", "rb").read()
scores = b"".join(struct.pack("<3f", *model.scores(f)) for f in struct.iter_unpack("<4f", flowers))
assert scores == open("iris/tensor_data/scores.bin", "rb").read(), "the self test fails"
print(model.scores([5.1, 3.5, 1.4, 0.2]))
`
	r := u.exec(t, python, "-B", "-c", program)
	var scores []float64
	if err := json.Unmarshal([]byte(r.stdout), &scores); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	if len(scores) != 3 || scores[0] < scores[1] || scores[0] < scores[2] {
		t.Errorf("a setosa: got scores %v, want the first to be the highest", scores)
	}
}

func TestRelease(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	u := newUser(t)
	u.login(t, s, "ada", "lovelace")
	u = u.onPath(t)
	one := newModel(map[string]string{"model/weights.bin": random("one", 100<<10)})
	one.write(t, u.path("m.carton"))
	release := func(version, commit string) result {
		return u.exec(t, example("ci/release.sh"), "m.carton", s.Host+"/org/m", version, commit, "out.json")
	}

	first := release("1.0.0", "abc123")
	if first.code != 0 {
		t.Fatalf("first: exit code %d\n%s", first.code, first.stderr)
	}
	digest := strings.TrimSuffix(first.stdout, "\n")
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		t.Fatalf("standard output: got %q, want the digest alone", first.stdout)
	}
	var p pushed
	raw, err := os.ReadFile(u.path("out.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &p); err != nil || p.Digest != digest || p.ModelHash != one.hash() {
		t.Errorf("out.json: got %v, %v, want digest %s and model hash %s", p, err, digest, one.hash())
	}
	for _, tag := range []string{"1.0.0", "sha-abc123"} {
		if got := u.pull(t, s.Host+"/org/m:"+tag, "-o", tag+".carton").Digest; got != digest {
			t.Errorf("tag %s: got digest %s, want %s", tag, got, digest)
		}
	}

	s.Traffic.Reset()
	if again := release("1.0.0", "abc123"); again.code != 0 || again.stdout != first.stdout {
		t.Errorf("again: got exit code %d and %q, want 0 and %q\n%s", again.code, again.stdout, first.stdout, again.stderr)
	}
	if in := s.Traffic.BlobBytesIn(); in != 0 {
		t.Errorf("again: %d bytes were sent, want none", in)
	}
	if next := release("1.0.1", "abc123"); next.code != 0 || next.stdout != first.stdout {
		t.Errorf("the same model as another version: got exit code %d and %q\n%s", next.code, next.stdout, next.stderr)
	}

	newModel(map[string]string{"model/weights.bin": "another model"}).write(t, u.path("m.carton"))
	if moved := release("1.0.0", "def456"); moved.code == 0 || moved.stdout != "" {
		t.Errorf("another model as 1.0.0: got exit code %d and %q, want a refusal", moved.code, moved.stdout)
	}
	if got := u.pull(t, s.Host+"/org/m:1.0.0", "-o", "still.carton").Digest; got != digest {
		t.Errorf("1.0.0 became %s, want %s", got, digest)
	}
	if r := u.run(t, "pull", s.Host+"/org/m:sha-def456", "-o", "never.carton"); r.code != notFound {
		t.Errorf("sha-def456: got exit code %d, want %d: nothing of a refused release is tagged", r.code, notFound)
	}
	if _, err := os.Stat(u.path("out.json.partial")); err == nil {
		t.Error("out.json.partial is left behind")
	}
}

func TestGoExample(t *testing.T) {
	u := newUser(t).onPath(t)
	program := u.path("example")
	build := exec.Command("go", "build", "-o", program, "./examples/go")
	build.Dir = testenv.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	ref := s.Host + "/org/m:1"
	c := ours(t)
	file := c.file

	copied := s.Host + "/org/copy:1"
	args := []string{file, ref, copied, "back.carton"}

	denied := u.exec(t, program, args...)
	if denied.code != failed || !strings.Contains(denied.stderr, "401 Unauthorized") || !strings.Contains(denied.stderr, "hint: registry.Client.Login") {
		t.Errorf("without a password: got exit code %d and %q", denied.code, denied.stderr)
	}
	u.login(t, s, "ada", "lovelace")
	for range 2 { // what is there already is no error
		if r := u.exec(t, program, args...); r.code != 0 || !strings.Contains(r.stdout, "back.carton: ") {
			t.Fatalf("got exit code %d and\n%s%s", r.code, r.stdout, r.stderr)
		}
	}
	if of, as := u.must(t, "resolve", ref).stdout, u.must(t, "resolve", copied).stdout; of != as {
		t.Errorf("the copy has the digest %s, want %s", as, of)
	}
	got, want := readZip(t, u.path("back.carton")), readZip(t, file)
	same(t, &got.model, &want.model)
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
