package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: a layout that another program made of one artifact needs no tag,
// which those programs don't write; and where there are several, the error says
// which.
func TestLayoutsWithoutTags(t *testing.T) {
	u := newUser(t)
	s := testregistry.Start(t, testregistry.Options{})
	c := newModel(map[string]string{"model/weights.bin": random("weights", 64<<10), "tensor_data/index.toml": "tensor = []\n"})
	c.write(t, u.path("m.carton"))
	ref := s.Host + "/org/m:1"
	pushed := u.push(t, "m.carton", ref)

	u.output(t, testenv.Program(t, "skopeo"), "--insecure-policy", "copy", "--src-tls-verify=false", "docker://"+ref, "oci:skopeo")
	u.output(t, filepath.Join(crane.Build(t), "crane"), "pull", "--insecure", "--format", "oci", ref, "crane")
	for _, layout := range []string{"oci:skopeo", "oci:crane"} {
		back := u.pull(t, layout, "-o", "back.carton", "--force")
		if back.Digest != pushed.Digest || back.ModelHash != c.hash() {
			t.Errorf("%s: got digest %s and model hash %s, want %s and %s", layout, back.Digest, back.ModelHash, pushed.Digest, c.hash())
		}
		for _, args := range [][]string{{"ls", layout}, {"inspect", layout}, {"verify", layout}, {"resolve", layout}, {"cat", layout, "carton.toml"}} {
			u.must(t, args...)
		}
		if got := strings.TrimSpace(u.must(t, "resolve", "-q", layout).stdout); got != pushed.Digest {
			t.Errorf("resolve %s: got %s", layout, got)
		}
		checkError(t, u.run(t, "ls", layout+":2"), badCase{code: notFound, want: []string{"no such tag"}, hint: pushed.Digest})
	}

	// Two manifests: nobody can say which.
	newModel(map[string]string{"model/weights.bin": "others"}).write(t, u.path("n.carton"))
	other := u.push(t, "n.carton", "oci:skopeo:other")
	r := u.run(t, "pull", "oci:skopeo", "-o", "out.carton")
	checkError(t, r, badCase{code: notFound, want: []string{"no such tag"}, hint: "other"})
	if !strings.Contains(r.stderr, pushed.Digest) || other.Digest == pushed.Digest {
		t.Errorf("does not list %s:\n%s", pushed.Digest, r.stderr)
	}
}
