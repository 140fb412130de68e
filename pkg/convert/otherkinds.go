package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ErrNoCarton: an artifact that is whole, as far as anybody looked, and that is
// no carton: a model without one, or no model artifact at all.
var ErrNoCarton = errors.New("is no carton")

// otherKind is a kind of artifact that people try to read, and that other
// programs are for.
type otherKind struct {
	name  string   // "a KitOps ModelKit"
	types []string // what its artifactType, its config's or a layer's media type begins with
	hint  string   // how to get at what it holds
}

// packFolder ends the hint for what another program can unpack.
const packFolder = "; carton-oci push DIR REF2 --runner NAME --framework-version REQ makes a carton of the folder"

// otherKinds are looked for in this order: programs put layers of their own
// beside an image's config. docs/readers.md has the same table, and a test
// compares them. The types are from the programs' sources: kitops
// (pkg/lib/mediatype), docker/model-runner (pkg/distribution/types), ollama
// (manifest), helm, wasm's OCI specification, cosign, sigstore and oras.
var otherKinds = []otherKind{
	{
		"a KitOps ModelKit",
		[]string{"application/vnd.kitops.modelkit.", "application/vnd.jozu.model."},
		"kit unpack REF -d DIR unpacks it" + packFolder,
	},
	{
		"a model of Docker Model Runner, in Docker's own format",
		[]string{"application/vnd.docker.ai."},
		"docker model pull REF runs it; oras blob fetch --output model.gguf REPOSITORY@DIGEST gets one of its files, and carton-oci pack makes a carton of that",
	},
	{
		"a model of ollama",
		[]string{"application/vnd.ollama.image."},
		"ollama pull REF runs it; oras blob fetch --output model.gguf REPOSITORY@DIGEST gets its weights, and carton-oci pack makes a carton of those",
	},
	{"a Helm chart", []string{"application/vnd.cncf.helm."}, "helm pull oci://REPOSITORY gets it"},
	{"a WebAssembly component", []string{"application/vnd.wasm."}, "wkg oci pull REF gets it; carton-oci pack --runner wasm makes a carton of it"},
	{
		"a signature or an attestation",
		[]string{"application/vnd.dev.cosign.", "application/vnd.dev.sigstore.", "application/vnd.in-toto", "application/vnd.cncf.notary."},
		"name the artifact that it is about",
	},
	{
		"a container image",
		[]string{ocispec.MediaTypeImageConfig, "application/vnd.docker.container.image.v1+json"},
		"crane export REF - | tar -x -C DIR unpacks it, a model in an image (a modelcar) too; where DIR then has a MANIFEST, it is a carton" + packFolder,
	},
	{
		"a folder of files, as oras pushes them",
		[]string{"application/vnd.unknown.artifact.v1", "application/vnd.unknown.config.v1+json", ocispec.MediaTypeEmptyJSON},
		"oras pull REF -o DIR gets them" + packFolder,
	},
}

// errOtherKind says what an image manifest is that is no model artifact, and what
// helps.
func errOtherKind(m *ocispec.Manifest) error {
	types := []string{m.ArtifactType, m.Config.MediaType}
	for _, l := range m.Layers {
		types = append(types, l.MediaType)
	}
	if m.ArtifactType != "" { // and its config need not say anything
		types = slices.DeleteFunc(types, func(t string) bool { return t == ocispec.MediaTypeEmptyJSON })
	}
	for _, k := range otherKinds {
		for _, prefix := range k.types {
			for _, t := range types {
				if strings.HasPrefix(t, prefix) {
					return hint.With(notModel("it is %s (%.128q)", k.name, t), "%s", hint.Text(k.hint))
				}
			}
		}
	}
	err := notModel("its config has the media type %.128q", m.Config.MediaType)
	if m.ArtifactType != "" {
		err = notModel("its artifactType is %.128q", m.ArtifactType)
	}
	return hint.With(err, "oras manifest fetch REF shows what it is; oras pull REF -o DIR gets its files, if it names them")
}

func notModel(format string, args ...any) error {
	return &layout.Error{Object: "artifact", Kind: ErrNoCarton, Msg: "is no model: " + fmt.Sprintf(format, args...)}
}

// errNoCarton is what a plain model is refused with.
func errNoCarton() error {
	err := error(&layout.Error{
		Object: "artifact", Kind: ErrNoCarton, Msg: "holds a model but no carton: neither MANIFEST nor carton.toml",
	})
	return hint.With(err, "to make a carton of it, say how it is loaded: carton-oci pull --runner NAME --framework-version REQ; ls, cat, inspect, tensors and verify read it as it is")
}
