package cri

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/kubernetes/manifest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	corev1 "k8s.io/api/core/v1"
)

// The promise: a pod that has the image form as a volume sees the carton, and the
// examples run as they are.

// iris makes the model of the examples, and pushes it as they say.
func (n *node) iris(t *testing.T) {
	t.Helper()
	quickstart := exec.Command("go", "run", "./examples/quickstart", filepath.Join(n.home, "iris"))
	quickstart.Dir = testenv.Root()
	if out, err := quickstart.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.must(t, "push", "./iris", n.registry.Host+"/models/iris:1", "--image")
}

func example(t *testing.T, name string) *manifest.Object {
	t.Helper()
	o, err := manifest.Read(filepath.Join(testenv.Root(), "examples", "kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// scores are what the examples' program prints, when it is run on the machine.
func (n *node) scores(t *testing.T, c corev1.Container) string {
	t.Helper()
	cmd := exec.Command(testenv.Program(t, "python3"), "-B", "-c", c.Args[0])
	cmd.Env = []string{"PYTHONPATH=" + filepath.Join(n.home, "iris", "model")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestExamplesRun(t *testing.T) { onEach(t, examplesRun) }

func examplesRun(t *testing.T, n *node) {
	n.iris(t)
	k := startKubelet(t, n)

	t.Run("pod.yaml", func(t *testing.T) {
		pod := example(t, "pod.yaml")
		got, err := k.run(t, pod.Name, pod.Pod)
		if err != nil || len(got) != 1 || got[0].code != 0 {
			t.Fatalf("got %+v, %v, want the container to end well", got, err)
		}
		if want := n.scores(t, pod.Pod.Containers[0]); got[0].stdout != want || !strings.HasPrefix(want, "[") {
			t.Errorf("got %q, want %q", got[0].stdout, want)
		}
		t.Logf("%s printed %s", pod.Name, got[0].stdout)
	})

	t.Run("verify.yaml", func(t *testing.T) {
		pod := example(t, "verify.yaml")
		got, err := k.run(t, pod.Name, pod.Pod)
		if err != nil || len(got) != 2 || got[0].code != 0 || got[1].code != 0 {
			t.Fatalf("got %+v, %v, want both containers to end well", got, err)
		}
		if !strings.Contains(got[0].stdout, "ok") {
			t.Errorf("verify printed %q", got[0].stdout)
		}
		t.Logf("verify printed\n%s", got[0].stdout)
	})

	t.Run("verify.yaml with another model's hash", func(t *testing.T) {
		pod := example(t, "verify.yaml")
		command := pod.Pod.InitContainers[0].Command
		command[len(command)-1] = strings.Repeat("0", 64)
		got, err := k.run(t, pod.Name+"-other", pod.Pod)
		if err != nil || len(got) != 1 || got[0].code != 3 {
			t.Errorf("got %+v, %v, want the pod to stop at the init container with exit code 3", got, err)
		}
	})
}

// reader is a pod that reads a volume, as a user who is not root.
func reader(ref, subPath string) corev1.PodSpec {
	nobody := int64(65534)
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: &nobody},
		Containers: []corev1.Container{{
			Name: "reader", Image: readerImage, Args: []string{"/carton"},
			VolumeMounts: []corev1.VolumeMount{{Name: "model", MountPath: "/carton", SubPath: subPath, ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: ref}}}},
	}
}

// tree is what a reader saw, a line by path.
func tree(t *testing.T, lines string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for line := range strings.Lines(lines) {
		var e struct{ Path string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		seen[e.Path] = line
	}
	return seen
}

func TestAPodSeesTheUnpackedCarton(t *testing.T) { onEach(t, aPodSeesTheUnpackedCarton) }

func aPodSeesTheUnpackedCarton(t *testing.T, n *node) {
	k := startKubelet(t, n)
	here := build(t, t.TempDir(), "reader", filepath.Join(testenv.Root(), "e2e", "kubernetes"), "./cmd/reader")
	folder := n.mixedFolder(t)
	for name, flags := range map[string][]string{
		"plain": nil,
		"zstd":  {"--compress", "zstd", "--bundle-below", "1MiB"},
	} {
		ref := n.registry.Host + "/models/" + name + ":1"
		n.must(t, append([]string{"push", folder, ref, "--image"}, flags...)...)
		unpacked := filepath.Join(n.home, "unpacked-"+name)
		n.must(t, "pull", ref, "--unpack", unpacked)
		if err := os.Symlink("model", filepath.Join(unpacked, "models")); err != nil { // which is in the image alone
			t.Fatal(err)
		}
		// KServe mounts models, whatever the image.
		for _, subPath := range []string{"", "model", "model/deep/er", "models", "models/deep"} {
			t.Run(name+" "+subPath, func(t *testing.T) {
				out, err := exec.Command(here, filepath.Join(unpacked, filepath.FromSlash(subPath))+"/").Output()
				if err != nil {
					t.Fatal(err)
				}
				pod := strings.Trim(name+"-"+strings.ReplaceAll(subPath, "/", "-"), "-")
				got, err := k.run(t, pod, reader(n.registry.Host+"/models/"+name+":1-image", subPath))
				if err != nil || len(got) != 1 || got[0].code != 0 {
					t.Fatalf("got %+v, %v", got, err)
				}
				sameTree(t, tree(t, got[0].stdout), tree(t, string(out)))
			})
		}
	}
}

func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("nothing is unpacked")
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("the pod sees %q, want %q", got[path], want[path])
		}
	}
	for path, line := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("the pod sees %q, which is not in the carton", line)
		}
	}
}

// mixedFolder is an unpacked carton with weights, many small files, symlinks, an
// empty file, and names of every kind.
func (n *node) mixedFolder(t *testing.T) string {
	t.Helper()
	root := filepath.Join(n.home, "mixed")
	files := map[string]string{
		"carton.toml":           "spec_version = 1\n\n[runner]\nrunner_name = \"python\"\nrequired_framework_version = \"=3.11\"\nrunner_compat_version = 1\n",
		"model/weights.bin":     strings.Repeat("0123456789abcdef", 1<<17), // 2 MiB
		"model/empty.txt":       "",
		"model/deep/er/日本語.txt": "named in Japanese",
	}
	for i := range 500 {
		files[fmt.Sprintf("model/package/module%d.py", i)] = strings.Repeat("pass\n", i)
	}
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"model/current.bin": "weights.bin", "model/deep/main.py": "../package/module7.py"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
		files[name] = files[filepath.ToSlash(filepath.Join(filepath.Dir(name), target))]
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list.WriteString(name + "=" + hexSum(files[name]) + "\n")
	}
	if err := os.WriteFile(filepath.Join(root, "MANIFEST"), []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

func hexSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// What docs/kubernetes.md says that goes wrong, goes wrong so.
func TestWhatGoesWrong(t *testing.T) { onEach(t, whatGoesWrong) }

func whatGoesWrong(t *testing.T, n *node) {
	n.iris(t)
	k := startKubelet(t, n)

	t.Run("the artifact", func(t *testing.T) {
		got, err := k.run(t, "artifact", reader(n.registry.Host+"/models/iris:1", ""))
		if err != nil || len(got) != 1 || got[0].code != 0 {
			t.Fatalf("got %+v, %v", got, err)
		}
		var tars int
		for path := range tree(t, got[0].stdout) {
			if strings.HasSuffix(path, ".tar") {
				tars++
			}
		}
		switch {
		case n.runtime == "containerd" && got[0].stdout != "":
			t.Errorf("got %s: containerd has learned to mount model artifacts, and docs/kubernetes.md says that it has not", got[0].stdout)
		case n.runtime == "CRI-O" && tars == 0:
			t.Errorf("got %s: CRI-O unpacks the layers of model artifacts, and docs/kubernetes.md says that it does not", got[0].stdout)
		}
	})
	for name, tt := range map[string]struct {
		subPath string
		want    map[string]string // by runtime; none is no error
	}{
		"a folder that is not there": {"modell", map[string]string{
			"containerd": "no such file or directory", "CRI-O": `sub path "modell" does not exist in image volume`,
		}},
		"a file": {"model/infer.py", map[string]string{
			"containerd": "only directory subpath is supported", "CRI-O": "invalid argument",
		}},
		"a folder outside": {"../..", map[string]string{"containerd": "path escapes from parent"}},
	} {
		t.Run("subPath of "+name, func(t *testing.T) {
			got, err := k.run(t, "subpath", reader(n.registry.Host+"/models/iris:1-image", tt.subPath))
			want, refused := tt.want[n.runtime]
			switch {
			case refused && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("got %+v, %v, want an error that says %q", got, err, want)
			case !refused && (err != nil || !strings.Contains(got[0].stdout, `"MANIFEST"`)):
				t.Errorf("got %+v, %v, want the carton: nothing outside it", got, err)
			}
		})
	}
}

// What has no tar layers is a folder of its files where a runtime mounts artifacts.
func TestAnArtifactOfRawLayersOnCRIO(t *testing.T) {
	n := startNode(t, "CRI-O")
	n.iris(t)
	n.must(t, "push", "./iris", n.registry.Host+"/models/raw:1")
	unpacked := filepath.Join(n.home, "unpacked")
	n.must(t, "pull", n.registry.Host+"/models/raw:1", "--unpack", unpacked)
	here := build(t, t.TempDir(), "reader", filepath.Join(testenv.Root(), "e2e", "kubernetes"), "./cmd/reader")
	out, err := exec.Command(here, unpacked+"/").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := startKubelet(t, n).run(t, "raw", reader(n.registry.Host+"/models/raw:1", ""))
	if err != nil || len(got) != 1 || got[0].code != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	sameTree(t, tree(t, got[0].stdout), tree(t, string(out)))
}
