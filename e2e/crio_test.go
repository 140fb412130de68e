package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The promise: where CRI-O mounts the artifact itself, a pod sees the whole
// carton. CRI-O's rules are played here, on what was pushed.

// crioNames are the annotations that CRI-O takes a layer's name from, the first
// that is there.
var crioNames = map[string][]string{
	"1.34": {ocispec.AnnotationTitle, "org.cnai.model.filepath"},
	"1.35": {ocispec.AnnotationTitle, "org.cncf.model.filepath"},
}

// crioMount returns what CRI-O mounts of an artifact: one file a layer, as its
// blob is, named by an annotation. A layer without a name is left out, and none
// is extracted.
func crioMount(t *testing.T, s *testregistry.Server, digest string, names []string) map[string]string {
	t.Helper()
	var manifest ocispec.Manifest
	if err := json.Unmarshal(s.Blob(t, digest), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.ArtifactType == "" {
		t.Error("the image manifest has no artifactType: CRI-O takes it for an image")
	}
	tree := map[string]string{}
	for _, layer := range manifest.Layers {
		for _, key := range names {
			if name, ok := layer.Annotations[key]; ok {
				if _, twice := tree[name]; twice {
					t.Errorf("two layers are called %s", name)
				}
				tree[name] = string(s.Blob(t, layer.Digest.String()))
				break
			}
		}
	}
	return tree
}

func TestCRIOMountsTheWholeCarton(t *testing.T) {
	m := weighty()
	m.symlinks["model/current.bin"] = "decoder.bin"
	want := maps.Clone(m.files)
	want["model/current.bin"] = m.content("model/current.bin") // CRI-O writes the file
	want["MANIFEST"] = m.manifest()
	u := newUser(t)
	m.write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	for _, family := range []string{"cnai", "cncf"} {
		digest := u.push(t, "m.carton", s.Host+"/org/m:1", "--media-types", family).Digest
		for version, names := range crioNames {
			t.Run(family+" "+version, func(t *testing.T) {
				compare(t, "file", crioMount(t, s, digest, names), want)
				// The title is not all that it can go by.
				compare(t, "file by its path", crioMount(t, s, digest, names[1:]), want)
			})
		}
	}
}

// What is in a bundle stays in it: CRI-O shows the tar.
func TestCRIOShowsBundlesAsTars(t *testing.T) {
	u := newUser(t)
	m := weighty()
	m.files["model/empty.txt"] = "" // has no blob of its own
	m.write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	tree := crioMount(t, s, u.push(t, "m.carton", s.Host+"/org/m:1").Digest, crioNames["1.35"])
	if _, ok := tree["model/empty.txt"]; ok {
		t.Error("the empty file is there: docs/kubernetes.md says that it is not")
	}
	var tars []string
	for name := range tree {
		if strings.HasSuffix(name, ".tar") {
			tars = append(tars, name)
		}
	}
	if !slices.Equal(tars, []string{".bundles/weight.config-1.tar"}) {
		t.Errorf("got the tars %v, want one of the category weight.config", tars)
	}
}
