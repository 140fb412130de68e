package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The promise: Harbor's page of a model shows its README and license. Harbor's
// rules are played here (2.13 to 2.15: src/controller/artifact/processor/cnai),
// on what push --readme pushed.

// harborLimit is the largest layer that Harbor shows, in bytes.
const harborLimit = 4 << 20

// harborPage returns what Harbor shows for one of the files that it looks for:
// the first layer for documents with one of the names, which must lie at the root.
func harborPage(t *testing.T, s *testregistry.Server, digest string, names ...string) (string, bool) {
	t.Helper()
	var manifest ocispec.Manifest
	if err := json.Unmarshal(s.Blob(t, digest), &manifest); err != nil {
		t.Fatal(err)
	}
	if want := "application/vnd.cnai.model.manifest.v1+json"; manifest.ArtifactType != want {
		t.Errorf("got artifactType %s, want %s: Harbor shows no page", manifest.ArtifactType, want)
	}
	const tarred, raw = "application/vnd.cnai.model.doc.v1.tar", "application/vnd.cnai.model.doc.v1.raw"
	for _, layer := range manifest.Layers {
		if !slices.Contains([]string{tarred, raw}, layer.MediaType) || !slices.Contains(names, layer.Annotations["org.cnai.model.filepath"]) {
			continue
		}
		if layer.Size > harborLimit {
			t.Errorf("%v: the layer has %d bytes, Harbor shows at most %d", names, layer.Size, harborLimit)
		}
		content := string(s.Blob(t, layer.Digest.String()))
		if layer.MediaType == tarred {
			for _, file := range readTar(t, content).files {
				return file, true
			}
		}
		return content, true
	}
	return "", false
}

func TestHarborShowsThePage(t *testing.T) {
	m := newModel(map[string]string{
		"model/weights.bin": random("weights", 64<<10), "misc/README.md": "# A model for tests\n", "misc/LICENSE": "Apache-2.0\n",
	})
	for name, flags := range map[string][]string{"raw": nil, "tar": {"--layers", "tar"}, "with an image": {"--image"}} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			m.write(t, u.path("m.carton"))
			s := testregistry.Start(t, testregistry.Options{})
			ref := s.Host + "/org/m:1"
			plain := u.push(t, append([]string{"m.carton", s.Host + "/org/plain:1"}, flags...)...)
			if page, ok := harborPage(t, s, plain.Digest, "README", "README.md"); ok {
				t.Errorf("without --readme the page is %q: then the flag is for nothing", page)
			}
			p := u.push(t, append([]string{"m.carton", ref, "--readme"}, flags...)...)
			for want, names := range map[string][]string{
				m.files["misc/README.md"]: {"README", "README.md"},
				m.files["misc/LICENSE"]:   {"LICENSE", "LICENSE.txt"},
			} {
				if page, ok := harborPage(t, s, p.Digest, names...); !ok || page != want {
					t.Errorf("%s: got %q, want %q", strings.Join(names, " or "), page, want)
				}
			}

			// The page is no member.
			if got := u.pull(t, ref, "-o", "back.carton").ModelHash; got != m.hash() {
				t.Errorf("got model hash %s, want %s", got, m.hash())
			}
			z := readZip(t, u.path("back.carton"))
			same(t, &z.model, m)
			if p.Digest == plain.Digest {
				t.Error("--readme changes nothing")
			}
		})
	}
}
