package e2e

import (
	"bytes"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: what the manifests in examples/kubernetes run does what they say.
// Here the programs run on this machine, with the paths and registries of the
// manifests taken elsewhere; e2e/kubernetes checks the manifests by Kubernetes'
// own types, and runs the first of them in a pod.

// podSpec is as much of a pod as is needed to run what it runs.
type podSpec struct {
	InitContainers []container `yaml:"initContainers"`
	Containers     []container
	Volumes        []struct {
		Name  string
		Image struct{ Reference string }
	}
}

type container struct {
	Command, Args []string
	Env           []struct{ Name, Value string }
}

// podOf reads the pod of any of the manifests.
func podOf(t *testing.T, name string) podSpec {
	t.Helper()
	var o struct {
		Kind string
		Spec struct {
			podSpec   `yaml:",inline"`
			Predictor podSpec
			Template  struct{ Spec podSpec }
		}
	}
	readYAML(t, example("kubernetes/"+name), &o)
	switch o.Kind {
	case "Pod":
		return o.Spec.podSpec
	case "InferenceService":
		return o.Spec.Predictor
	}
	return o.Spec.Template.Spec
}

// iris makes the model of the examples in the folder iris.
func (u *user) iris(t *testing.T) {
	t.Helper()
	build := exec.Command("go", "run", "./examples/quickstart", u.path("iris"))
	build.Dir = testenv.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// place takes the words of a manifest to this machine: what begins with a key is
// elsewhere.
func place(words []string, elsewhere map[string]string) []string {
	var placed []string
	for _, word := range words {
		for from, to := range elsewhere {
			if rest, ok := strings.CutPrefix(word, from); ok {
				word = to + rest
				break
			}
		}
		placed = append(placed, word)
	}
	return placed
}

// scores runs the program of a container, which prints scores, with the model
// in a folder.
func (u *user) scores(t *testing.T, c container, elsewhere map[string]string) string {
	t.Helper()
	path := place([]string{c.Env[0].Value}, elsewhere)[0]
	r := u.with("PYTHONPATH="+path).exec(t, testenv.Program(t, "python3"), "-B", "-c", c.Args[0])
	var scores []float64
	if err := json.Unmarshal([]byte(r.stdout), &scores); err != nil || len(scores) != 3 || r.code != 0 {
		t.Errorf("got exit code %d and %q, want three scores\n%s", r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

func TestPodsPredict(t *testing.T) {
	u := newUser(t)
	u.iris(t)
	want := u.scores(t, podOf(t, "pod.yaml").Containers[0], map[string]string{"/model": u.path("iris/model")})
	for name, volume := range map[string]string{"pod-crio.yaml": "iris", "verify.yaml": "iris/model"} {
		if got := u.scores(t, podOf(t, name).Containers[0], map[string]string{"/model": u.path(volume)}); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// Two manifests name the model that they want.
func TestManifestsNameTheModelOfTheQuickstart(t *testing.T) {
	u := newUser(t)
	u.iris(t)
	want := fileSum(t, u.path("iris/MANIFEST"))
	for _, name := range []string{"verify.yaml", "unpack.yaml"} {
		command := podOf(t, name).InitContainers[0].Command
		if got := command[len(command)-1]; got != want {
			t.Errorf("%s wants the model hash %s, and examples/quickstart makes %s", name, got, want)
		}
	}
}

// A container has no home, and may have no file that it can write but in volumes.
func (u *user) inContainer(env ...string) *user {
	other := *u
	other.env = append([]string{"PATH=" + filepath.Dir(cartonOCI)}, env...)
	return &other
}

func TestInitContainerVerifies(t *testing.T) {
	u := newUser(t)
	u.iris(t)
	command := podOf(t, "verify.yaml").InitContainers[0].Command
	args := place(command[1:], map[string]string{"/carton": u.path("iris")})
	if command[0] != "carton-oci" {
		t.Fatalf("got the command %q, want carton-oci", command[0])
	}
	u.inContainer().must(t, args...)
	writeFile(t, u.path("iris/model/infer.py"), "changed\n")
	if r := u.inContainer().run(t, args...); r.code != badContent || !strings.Contains(r.stdout, "model/infer.py") {
		t.Errorf("a changed file: got exit code %d, want %d and its name in\n%s", r.code, badContent, r.stdout)
	}
}

func TestInitContainerPulls(t *testing.T) {
	u := newUser(t)
	u.iris(t)
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	u.login(t, s, "ada", "lovelace")
	u.must(t, "push", "./iris", s.Host+"/models/iris:1")

	pod := podOf(t, "unpack.yaml")
	elsewhere := map[string]string{
		"registry.example.com": s.Host, "/models": u.path("volume"), "/credentials": filepath.Join(u.home, ".docker"),
	}
	if err := os.Mkdir(u.path("volume"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := pod.InitContainers[0]
	inPod := u.inContainer(c.Env[0].Name + "=" + place([]string{c.Env[0].Value}, elsewhere)[0])
	args := place(c.Command[1:], elsewhere)
	inPod.must(t, args...)
	s.Traffic.Reset()
	inPod.must(t, args...) // as after a restart
	if out := s.Traffic.BlobBytesOut(); out > 10<<10 {
		t.Errorf("again: %d bytes came, want no model", out)
	}
	u.must(t, "verify", u.path("volume/iris"))
	onlyThese(t, u.path("volume"), "iris")
	u.scores(t, pod.Containers[0], elsewhere)
}

// TestJobPromotes: production has what staging has, by digest, whatever form it
// was pushed in.
func TestJobPromotes(t *testing.T) {
	for name, flags := range map[string][]string{
		"with its image":          {"--image"},
		"raw layers":              {"--no-image"},
		"annotated, newer types":  {"--image", "--annotation", "org.example.commit=4f2a", "--media-types", "cncf"},
		"compressed, with README": {"--image", "--compress", "zstd", "--bundle-below", "1MiB", "--readme"},
		"compat":                  {"--image", "--compat", "image-config"},
	} {
		t.Run(name, func(t *testing.T) { jobPromotes(t, flags) })
	}
}

func jobPromotes(t *testing.T, flags []string) {
	u := newUser(t)
	u.iris(t)
	staging := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	production := testregistry.Start(t, testregistry.Options{Auth: testregistry.Htpasswd, Users: users})
	u.login(t, staging, "ada", "lovelace")
	u.login(t, production, "ada", "lovelace")
	first := u.push(t, append([]string{"./iris", staging.Host + "/models/iris:1"}, flags...)...)
	if !slices.Contains(flags, "--image") {
		u.must(t, "image", "-q", staging.Host+"/models/iris:1")
	}

	c := podOf(t, "promote.yaml").Containers[0]
	elsewhere := map[string]string{
		"staging.example.com": staging.Host, "registry.example.com": production.Host, "/credentials": filepath.Join(u.home, ".docker"),
	}
	job := u.inContainer(c.Env[0].Name + "=" + place([]string{c.Env[0].Value}, elsewhere)[0])
	args := place(c.Command[1:], elsewhere)
	job.must(t, args...)
	for _, tag := range []string{"1", "1-image"} {
		want := strings.TrimSpace(u.must(t, "resolve", "-q", staging.Host+"/models/iris:"+tag).stdout)
		got := strings.TrimSpace(u.must(t, "resolve", "-q", production.Host+"/models/iris:"+tag).stdout)
		if got != want {
			t.Errorf("%s: got digest %s, want %s as in staging", tag, got, want)
		}
	}
	production.Traffic.Reset()
	job.must(t, args...) // as after a restart
	if in := production.Traffic.BlobBytesIn(); in != 0 && slices.Contains(flags, "--image") {
		t.Errorf("again: %d bytes were sent, want none", in)
	}
	back := u.pull(t, production.Host+"/models/iris:1", "-o", "back.carton")
	if back.ModelHash != first.ModelHash {
		t.Errorf("got model hash %s, want %s", back.ModelHash, first.ModelHash)
	}
}

// Both servers of the examples answer as KServe's protocol has it.
func TestServersPredict(t *testing.T) {
	u := newUser(t)
	u.iris(t)
	var want []float64
	text := u.scores(t, podOf(t, "pod.yaml").Containers[0], map[string]string{"/model": u.path("iris/model")})
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deployment.yaml", "kserve.yaml"} {
		t.Run(name, func(t *testing.T) {
			address := u.serve(t, podOf(t, name).Containers[0])
			resp, err := http.Post("http://"+address+"/v1/models/iris:predict", "application/json",
				strings.NewReader(`{"instances": [[5.1, 3.5, 1.4, 0.2]]}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var got struct{ Predictions [][]float64 }
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if len(got.Predictions) != 1 || len(got.Predictions[0]) != 3 || got.Predictions[0][0] != want[0] {
				t.Errorf("got %v, want %v", got.Predictions, want)
			}
		})
	}
}

// serve runs a container's server until the test ends, and returns where it
// listens once it is ready.
func (u *user) serve(t *testing.T, c container) string {
	t.Helper()
	address := closedPort(t)
	_, port, _ := net.SplitHostPort(address)
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	if env["PORT"] != "8080" {
		t.Errorf("got port %s, want 8080", env["PORT"])
	}
	maps.Copy(env, map[string]string{"PORT": port, "PYTHONPATH": u.path("iris/model")})
	cmd := exec.Command(testenv.Program(t, "python3"), "-B", "-c", c.Args[0])
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get("http://" + address + "/v1/models/iris")
		if err == nil {
			_ = resp.Body.Close()
			return address
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("%v\n%s", err, &stderr)
		}
	}
}
