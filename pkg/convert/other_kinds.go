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
	name  string    // "a KitOps ModelKit"
	types []string  // what its artifactType, its config's or a layer's media type begins with
	hint  hint.Hint // how to get at what it holds
}

// unpacks is the hint for what another program can unpack.
func unpacks(how string) hint.Hint {
	return hint.New("%s; %s DIR REF2 %s NAME %s REQ makes a carton of the folder", hint.Text(how), hint.Push,
		hint.Runner, hint.FrameworkVersion)
}

// otherKinds are looked for in this order: programs put layers of their own
// beside an image's config. docs/readers.md has the same table, and a test
// compares them. The types are from the programs' sources: kitops
// (pkg/lib/mediatype), docker/model-runner (pkg/distribution/types), ollama
// (manifest), helm, wasm's OCI specification, cosign, sigstore and oras.
var otherKinds = []otherKind{
	{
		"a KitOps ModelKit",
		[]string{"application/vnd.kitops.modelkit.", "application/vnd.jozu.model."},
		unpacks("kit unpack REF -d DIR unpacks it"),
	},
	{
		"a model of Docker Model Runner, in Docker's own format",
		[]string{"application/vnd.docker.ai."},
		hint.New("docker model pull REF runs it; oras blob fetch --output model.gguf REPOSITORY@DIGEST gets one of "+
			"its files, and %s makes a carton of that", hint.Pack),
	},
	{
		"a model of ollama",
		[]string{"application/vnd.ollama.image."},
		hint.New("ollama pull REF runs it; oras blob fetch --output model.gguf REPOSITORY@DIGEST gets its weights, "+
			"and %s makes a carton of those", hint.Pack),
	},
	{"a Helm chart", []string{"application/vnd.cncf.helm."}, hint.New("helm pull oci://REPOSITORY gets it")},
	{
		"a WebAssembly component",
		[]string{"application/vnd.wasm."},
		hint.New("wkg oci pull REF gets it; %s %s wasm makes a carton of it", hint.Pack, hint.Runner),
	},
	{
		"a signature or an attestation",
		[]string{
			"application/vnd.dev.cosign.", "application/vnd.dev.sigstore.", "application/vnd.in-toto",
			"application/vnd.cncf.notary.",
		},
		hint.New("name the artifact that it is about"),
	},
	{
		"a container image",
		[]string{ocispec.MediaTypeImageConfig, "application/vnd.docker.container.image.v1+json"},
		unpacks("crane export REF - | tar -x -C DIR unpacks it, a model in an image (a modelcar) too; where DIR " +
			"then has a MANIFEST, it is a carton"),
	},
	{
		"a folder of files, as oras pushes them",
		[]string{
			"application/vnd.unknown.artifact.v1", "application/vnd.unknown.config.v1+json",
			ocispec.MediaTypeEmptyJSON,
		},
		unpacks("oras pull REF -o DIR gets them"),
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
					return hint.Add(notModel("it is %s (%.128q)", k.name, t), k.hint)
				}
			}
		}
	}
	err := notModel("its config has the media type %.128q", m.Config.MediaType)
	if m.ArtifactType != "" {
		err = notModel("its artifactType is %.128q", m.ArtifactType)
	}
	return hint.With(err,
		"oras manifest fetch REF shows what it is; oras pull REF -o DIR gets its files, if it names them")
}

func notModel(format string, args ...any) error {
	return &layout.Error{Object: "artifact", Kind: ErrNoCarton, Msg: "is no model: " + fmt.Sprintf(format, args...)}
}

// errNoCarton is what a plain model is refused with.
func errNoCarton() error {
	err := error(&layout.Error{
		Object: "artifact", Kind: ErrNoCarton, Msg: "holds a model but no carton: neither MANIFEST nor carton.toml",
	})
	return hint.With(err, "to make a carton of it, say how it is loaded: %s %s NAME %s REQ; %s read it as it is",
		hint.Pull, hint.Wrap, hint.FrameworkVersion, hint.Plain)
}
