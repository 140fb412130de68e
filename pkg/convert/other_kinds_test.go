package convert

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// layerOf is a layer of another program's type.
func typedLayer(mediaType string) foreignLayer {
	return foreignLayer{mediaType: mediaType, data: []byte(mediaType)}
}

// TestOtherKindsAreCalledByTheirName: image manifests as other programs write
// them, and the program that helps.
func TestOtherKindsAreCalledByTheirName(t *testing.T) {
	const image = "application/vnd.docker.container.image.v1+json"
	for name, c := range map[string]struct {
		artifact foreign
		kind     string
		help     string
	}{
		"KitOps 1": {foreign{
			configType: "application/vnd.kitops.modelkit.config.v1+json", config: `{"manifestVersion":"1.0.0"}`,
			layers: []foreignLayer{typedLayer("application/vnd.kitops.modelkit.model.v1.tar+gzip")},
		}, "a KitOps ModelKit", "kit unpack"},
		"KitOps with an artifactType": {foreign{
			artifactType: "application/vnd.kitops.modelkit.manifest.v1+json",
			configType:   "application/vnd.kitops.modelkit.config.v1+json", config: `{"manifestVersion":"1.0.0"}`,
			layers: []foreignLayer{typedLayer("application/vnd.kitops.modelkit.model.v1.tar")},
		}, "a KitOps ModelKit", "kit unpack"},
		"Docker Model Runner 0.1": {foreign{
			configType: "application/vnd.docker.ai.model.config.v0.1+json", config: `{"config":{"format":"gguf"}}`,
			layers: []foreignLayer{typedLayer("application/vnd.docker.ai.gguf.v3"), typedLayer("application/vnd.docker.ai.license")},
		}, "Docker Model Runner", "docker model pull"},
		"Docker Model Runner 0.2": {foreign{
			configType: "application/vnd.docker.ai.model.config.v0.2+json", config: `{}`,
			layers: []foreignLayer{typedLayer("application/vnd.docker.ai.safetensors")},
		}, "Docker Model Runner", "docker model pull"},
		"ollama": {foreign{
			configType: image, config: `{"model_format":"gguf"}`,
			layers: []foreignLayer{typedLayer("application/vnd.ollama.image.model"), typedLayer("application/vnd.ollama.image.license")},
		}, "a model of ollama", "ollama pull"},
		"a modelcar by buildah": {foreign{
			configType: "application/vnd.oci.image.config.v1+json", config: `{}`,
			layers: []foreignLayer{typedLayer("application/vnd.oci.image.layer.v1.tar+gzip")},
		}, "a container image", "crane export"},
		"an image by docker push": {foreign{
			configType: image, config: `{}`,
			layers: []foreignLayer{typedLayer("application/vnd.docker.image.rootfs.diff.tar.gzip")},
		}, "a container image", "crane export"},
		"oras push": {foreign{
			artifactType: "application/vnd.unknown.artifact.v1", configType: "application/vnd.oci.empty.v1+json", config: "{}",
			layers: []foreignLayer{typedLayer("application/vnd.oci.image.layer.v1.tar")},
		}, "as oras pushes them", "oras pull"},
		"oras push of 2022": {foreign{
			configType: "application/vnd.unknown.config.v1+json", config: "{}",
			layers: []foreignLayer{typedLayer("application/vnd.oci.image.layer.v1.tar")},
		}, "as oras pushes them", "oras pull"},
		"cosign": {foreign{
			configType: "application/vnd.oci.image.config.v1+json", config: "{}",
			layers: []foreignLayer{typedLayer("application/vnd.dev.cosign.simplesigning.v1+json")},
		}, "a signature", "name the artifact"},
		"something else": {foreign{
			artifactType: "application/vnd.example.thing", configType: "application/vnd.oci.image.config.v1+json", config: "{}",
			layers: []foreignLayer{typedLayer("application/x")},
		}, "a container image", "crane export"},
		"what nobody knows": {foreign{
			artifactType: "application/vnd.example.thing", configType: "application/vnd.example.config", config: "{}",
			layers: []foreignLayer{typedLayer("application/x")},
		}, `artifactType is "application/vnd.example.thing"`, "oras manifest fetch"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, opts := range []OpenOptions{{}, {Plain: true}, {Wrap: &carton.Runner{Name: "noop", RequiredFrameworkVersion: "*"}}} {
				_, err := c.artifact.open(t, opts)
				if !errors.Is(err, ErrNoCarton) || !strings.Contains(err.Error(), c.kind) {
					t.Errorf("got %v, want %q", err, c.kind)
				}
				if hints := hint.Of(err); len(hints) != 1 || !strings.Contains(hints[0].String(), c.help) {
					t.Errorf("got the hints %q, want %q", hints, c.help)
				}
			}
		})
	}
}

// TestReadersTableHasTheKinds holds docs/readers.md against the code.
func TestReadersTableHasTheKinds(t *testing.T) {
	text, err := os.ReadFile("../../docs/readers.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, k := range otherKinds {
		rows = append(rows, "| "+k.name+" | `"+strings.Join(k.types, "…` `")+"…` |")
	}
	for _, row := range rows {
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/readers.md has no row that begins with\n%s", row)
		}
	}
	if n := strings.Count(string(text), "…` |"); n != len(rows) {
		t.Errorf("docs/readers.md has %d kinds, want %d", n, len(rows))
	}
}
