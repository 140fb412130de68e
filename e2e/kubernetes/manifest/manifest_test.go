package manifest

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: every manifest in examples/kubernetes is one that a cluster takes.

func examples(t *testing.T) map[string]*Object {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(testenv.Root(), "examples", "kubernetes", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*Object{}
	for _, name := range names {
		o, err := Read(name)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		objects[filepath.Base(name)] = o
	}
	return objects
}

func TestExamplesFollowTheAPI(t *testing.T) {
	objects := examples(t)
	want := []string{"deployment.yaml", "kserve.yaml", "pod-crio.yaml", "pod.yaml", "promote.yaml", "unpack.yaml", "verify.yaml"}
	if got := slices.Sorted(maps.Keys(objects)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, o := range objects {
		for _, finding := range o.Check() {
			t.Errorf("%s: %s", name, finding)
		}
	}
}

// Which form of the model an example mounts is what it is about.
func TestExamplesMountTheirForm(t *testing.T) {
	const artifact, image = "registry.example.com/models/iris:1", "registry.example.com/models/iris:1-image"
	want := map[string]string{"pod.yaml": image, "deployment.yaml": image, "kserve.yaml": image, "verify.yaml": image, "pod-crio.yaml": artifact}
	for name, o := range examples(t) {
		for _, v := range o.Pod.Volumes {
			if v.Image != nil && v.Image.Reference != want[name] {
				t.Errorf("%s: mounts %s, want %s", name, v.Image.Reference, want[name])
			}
		}
	}
}

const small = `apiVersion: v1
kind: Pod
metadata:
  name: small
spec:
  containers:
    - name: c
      image: example.com/c:1
      volumeMounts: [{name: model, mountPath: /model, readOnly: true}]
  volumes:
    - name: model
      image: {reference: "example.com/m:1-image", pullPolicy: IfNotPresent}
`

func TestWhatAClusterRefuses(t *testing.T) {
	if o, err := parse([]byte(small)); err != nil || len(o.Check()) > 0 {
		t.Fatalf("got %v and %v, want nothing wrong", err, o.Check())
	}
	for name, tt := range map[string]struct{ old, new, want string }{
		"an unknown field":       {"pullPolicy", "pullPolice", "pullPolice"},
		"a field in other case":  {"mountPath", "mountpath", "mountpath"},
		"a field twice":          {"reference:", "reference: x, reference:", "reference"},
		"another kind":           {"kind: Pod", "kind: Pot", "Pot"},
		"another version":        {"apiVersion: v1", "apiVersion: v2", "v2"},
		"a policy that is none":  {"IfNotPresent", "Sometimes", "Sometimes"},
		"no reference":           {`reference: "example.com/m:1-image", `, "", "no reference"},
		"a volume that is not":   {"{name: model", "{name: modell", "modell"},
		"a relative path":        {"/model, read", "model, read", "mountPath"},
		"a path out of a volume": {"/model, read", "/model, subPath: ../x, read", "subPath"},
		"a volume to write":      {", readOnly: true", "", "read-only"},
		"a volume of nothing":    {`image: {reference: "example.com/m:1-image", pullPolicy: IfNotPresent}`, "configMap: {name: x}", "want one"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(small, tt.old, tt.new, 1)
			if text == small {
				t.Fatal("nothing is changed")
			}
			o, err := parse([]byte(text))
			var said []string
			if err != nil {
				said = append(said, err.Error())
			} else {
				said = o.Check()
			}
			if !strings.Contains(strings.Join(said, "\n"), tt.want) {
				t.Errorf("got %q, want a finding that names %s", said, tt.want)
			}
		})
	}
}
