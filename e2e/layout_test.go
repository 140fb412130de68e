package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
)

// The promise: an image-layout folder is as good as a registry, and as good for
// other programs.

func TestThroughAnImageLayout(t *testing.T) {
	u := newUser(t)
	c := ours(t)
	file := c.file
	first := u.push(t, file, "oci:layout:1")
	if first.ModelHash != c.hash || first.statuses()["uploaded"] != len(first.Layers) {
		t.Errorf("first push: got model hash %s and %v", first.ModelHash, first.statuses())
	}
	s := testregistry.Start(t, testregistry.Options{})
	if got := u.push(t, file, s.Host+"/org/test:1").Digest; got != first.Digest {
		t.Errorf("digest in a layout %s, in a registry %s, want the same", first.Digest, got)
	}

	u.emptyCache(t)
	second := u.push(t, file, "oci:layout:1")
	if second.statuses()["exists"] != len(second.Layers) || *second.BytesUploaded != 0 {
		t.Errorf("second push: got %v and %d bytes, want every layer to exist", second.statuses(), *second.BytesUploaded)
	}

	u.pull(t, "oci:layout:1", "-o", "back.carton")
	u.pull(t, "oci:layout@"+first.Digest, "-o", "bydigest.carton")
	u.pull(t, s.Host+"/org/test:1", "-o", "registry.carton")
	got, want := readZip(t, u.path("back.carton")), readZip(t, file)
	same(t, &got.model, &want.model)
	sum := fileSum(t, u.path("back.carton"))
	for _, name := range []string{"bydigest.carton", "registry.carton"} {
		if got := fileSum(t, u.path(name)); got != sum {
			t.Errorf("%s: got sha256 %s, want %s as from the layout's tag", name, got, sum)
		}
	}

	// Straight from the layout into a registry, and from there into a layout.
	if got := u.push(t, "oci:layout:1", s.Host+"/org/again:1"); got.Digest != first.Digest {
		t.Errorf("from layout to registry: got digest %s, want %s", got.Digest, first.Digest)
	}
	if got := u.push(t, s.Host+"/org/again:1", "oci:other:1"); got.Digest != first.Digest {
		t.Errorf("from registry to layout: got digest %s, want %s", got.Digest, first.Digest)
	}
}

func TestOtherProgramsReadTheLayout(t *testing.T) {
	u := newUser(t)
	c := ours(t)
	file := c.file
	p := u.push(t, file, "oci:layout:1")

	t.Run("oras-go", func(t *testing.T) {
		store, err := oci.New(u.path("layout"))
		if err != nil {
			t.Fatal(err)
		}
		desc, err := store.Resolve(t.Context(), "1")
		if err != nil {
			t.Fatal(err)
		}
		if desc.Digest.String() != p.Digest {
			t.Errorf("got digest %s, want %s", desc.Digest, p.Digest)
		}
		successors, err := content.Successors(t.Context(), store, desc)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range successors {
			if _, err := content.FetchAll(t.Context(), store, s); err != nil {
				t.Errorf("%s: %v", s.Digest, err)
			}
		}
		if got, want := len(successors), len(p.Layers)+1; got != want {
			t.Errorf("got %d layers and configs, want %d", got, want)
		}
	})

	t.Run("skopeo", func(t *testing.T) {
		skopeo := testenv.Program(t, "skopeo")
		run := func(args ...string) string {
			t.Helper()
			r := u.exec(t, skopeo, append([]string{"--insecure-policy"}, args...)...)
			if r.code != 0 {
				t.Fatalf("skopeo %v: exit code %d\n%s", args, r.code, r.stderr)
			}
			return r.stdout
		}
		if raw := run("inspect", "--raw", "oci:layout:1"); "sha256:"+hexSum(raw) != p.Digest {
			t.Errorf("inspect --raw: got\n%s\nwhich does not have the digest %s", raw, p.Digest)
		}
		run("copy", "oci:layout:1", "oci:copied:1")
		if raw := run("inspect", "--raw", "oci:copied:1"); "sha256:"+hexSum(raw) != p.Digest {
			t.Errorf("copied into a layout: the digest is not %s any more", p.Digest)
		}
		s := testregistry.Start(t, testregistry.Options{})
		run("copy", "--dest-tls-verify=false", "oci:layout:1", "docker://"+s.Host+"/org/copied:1")
		for _, ref := range []string{"oci:copied:1", s.Host + "/org/copied:1"} {
			back := u.pull(t, ref, "-o", "copied.carton", "--force")
			if back.Digest != p.Digest || back.ModelHash != c.hash {
				t.Errorf("%s: got digest %s and model hash %s, want %s and %s", ref, back.Digest, back.ModelHash, p.Digest, c.hash)
			}
			got, want := readZip(t, u.path("copied.carton")), readZip(t, file)
			same(t, &got.model, &want.model)
		}
	})
}

func TestLayoutHoldsSeveralArtifacts(t *testing.T) {
	u := newUser(t)
	one, two := newModel(map[string]string{"model/a.bin": "1"}), newModel(map[string]string{"model/a.bin": "2"})
	one.write(t, u.path("one.carton"))
	two.write(t, u.path("two.carton"))
	u.must(t, "push", "one.carton", "oci:layout:1,latest")
	u.must(t, "push", "two.carton", "oci:layout:2,latest")
	for tag, m := range map[string]*model{"1": one, "2": two, "latest": two} {
		if got := u.pull(t, "oci:layout:"+tag, "-o", tag+".carton").ModelHash; got != m.hash() {
			t.Errorf("tag %s: got model hash %s, want %s", tag, got, m.hash())
		}
	}
	var index struct {
		SchemaVersion int
		Manifests     []struct{ Annotations map[string]string }
	}
	raw, err := os.ReadFile(filepath.Join(u.path("layout"), "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	tags := map[string]int{}
	for _, m := range index.Manifests {
		tags[m.Annotations["org.opencontainers.image.ref.name"]]++
	}
	if index.SchemaVersion != 2 || tags["1"] != 1 || tags["2"] != 1 || tags["latest"] != 1 {
		t.Errorf("index.json: got schema version %d and tags %v, want 2, and each of 1, 2, latest once", index.SchemaVersion, tags)
	}
}

// httpGet fetches a URL with a client that has no credentials.
func httpGet(t testing.TB, client *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
