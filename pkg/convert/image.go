package convert

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ErrNoImage: a carton that has no image form. The error is a [*carton.Error]
// that names the member.
var ErrNoImage = errors.New("has no image form")

// headName is what the first tar of an image is called where people see it.
const headName = bundleFolder + "carton.tar"

// planImage cuts the carton into the layers of its image: in front one tar of
// what is raw in an artifact of tar layers, MANIFEST and carton.toml, and of the
// symlink models; then that artifact's tar layers in their order.
func (b *builder) planImage(artifact []*layer) ([]*layer, error) {
	if b.opts.Layers == FormRaw {
		own := b.opts
		own.Layers, own.MediaTypes = FormTar, FamilyCNAI
		var err error
		if artifact, err = newPlanner(b.members, b.info, own, nil).layers(); err != nil {
			return nil, err
		}
	}
	head := b.head()
	var tars []*layer
	for _, l := range artifact {
		switch {
		case l.extra:
		case l.format != formatRaw:
			tars = append(tars, l)
		default:
			head.manifest = head.manifest || l.manifest
			head.members = append(head.members, l.members...)
		}
	}
	return head.before(tars), nil
}

// head begins the first tar of an image.
func (b *builder) head() *layer {
	return &layer{
		name: headName, category: categoryConfig, format: formatTar,
		modelsLink: needsModelsLink(b.src.Manifest()),
	}
}

// before puts the first tar of an image before others, unless it holds nothing.
func (l *layer) before(tars []*layer) []*layer {
	if l.manifest || l.modelsLink || l.members != nil {
		return append([]*layer{l}, tars...)
	}
	return tars
}

// image makes the image form of its layers, and lets it refer to the artifact where
// opts say so.
func (b *builder) image(ctx context.Context, layers []*layer, artifact *layout.Artifact) (*layout.Artifact, error) {
	if err := b.learn(ctx, layers); err != nil {
		return nil, err
	}
	spec := imageSpec{info: b.info, created: b.opts.Created, annotations: b.annotations}
	origins := originsOf(b.src, b.opts.LinkOrigins)
	lists := memberLists(b.src.Manifest(), layers)
	for i, l := range layers {
		out := l.inImage(lists[i])
		out.Origins = origins(l.digest)
		spec.layers = append(spec.layers, imageLayer{Layer: out, diffID: l.diffID})
	}
	if b.opts.ImageSubject {
		spec.subject = &artifact.Descriptor
	}
	return spec.build()
}

// checkImageMembers refuses what an image can't hold: names that mean "delete
// this" in a layer.
// https://github.com/opencontainers/image-spec/blob/v1.1.1/layer.md#whiteouts
func checkImageMembers(members []carton.Member) error {
	for _, m := range members {
		for name := range strings.SplitSeq(m.Path, "/") {
			if strings.HasPrefix(name, ".wh.") {
				return &carton.Error{
					Path: m.Path, Kind: ErrNoImage,
					Msg: "the carton has no image form: in an image, a name that begins with .wh. deletes a file",
				}
			}
		}
	}
	return nil
}

// imageSpec is what an image manifest is made of.
type imageSpec struct {
	info        *carton.Info
	created     time.Time
	annotations map[string]string
	layers      []imageLayer
	subject     *ocispec.Descriptor
}

// imageLayer is a layer of an image.
type imageLayer struct {
	layout.Layer               // without a digest, until it was read
	diffID       digest.Digest // its digest without compression
	checked      *checkedTar   // of a stored artifact's tar, which tells the diffID; else nil
}

// build makes the image manifest, and refuses one that no runtime would mount.
func (s *imageSpec) build() (*layout.Artifact, error) {
	bad := func(text string, args ...any) error {
		return &layout.Error{Object: "image", Kind: layout.ErrFormat, Msg: fmt.Sprintf(text, args...)}
	}
	if len(s.layers) > maxImageLayers {
		return nil, bad("has %d layers, want at most %d", len(s.layers), maxImageLayers)
	}
	spec := layout.ArtifactSpec{Subject: s.subject, Annotations: s.annotations}
	var diffIDs []digest.Digest
	for _, l := range s.layers {
		f, ok := parseImageType(l.MediaType)
		if !ok {
			return nil, bad("has a layer of type %q", l.MediaType)
		}
		if l.Digest == "" || l.diffID == "" {
			return nil, bad("the layer %s was not read", l.Name)
		}
		if err := layout.CheckDigest(l.diffID); err != nil {
			return nil, err
		}
		if f == formatTar && l.diffID != l.Digest {
			return nil, bad("layer %s is not compressed, but has another digest without compression: %s", l.Digest,
				l.diffID)
		}
		spec.Layers, diffIDs = append(spec.Layers, l.Layer), append(diffIDs, l.diffID)
	}
	spec.Config = imageConfig(s.info, s.created, diffIDs)
	return layout.NewArtifact(spec)
}

// imageConfigJSON is the config of an image that holds files and runs nothing.
// https://github.com/opencontainers/image-spec/blob/v1.1.1/config.md
type imageConfigJSON struct {
	Created      string `json:"created,omitempty"` // RFC 3339
	Architecture string `json:"architecture"`
	Variant      string `json:"variant,omitempty"`
	OS           string `json:"os"`
	RootFS       struct {
		Type    string          `json:"type"` // "layers"
		DiffIDs []digest.Digest `json:"diff_ids"`
	} `json:"rootfs"`
}

func imageConfig(info *carton.Info, when time.Time, diffIDs []digest.Digest) layout.Layer {
	c := imageConfigJSON{OS: "linux"}
	if !when.IsZero() {
		c.Created = created(when)
	}
	c.Architecture, c.Variant = architecture(info.RequiredPlatforms)
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", diffIDs
	return configLayer("image config", ocispec.MediaTypeImageConfig, c)
}

// architectures are Go's names, which images have, for what target triples begin
// with. The first that matches counts; a "*" stands for the rest of the word.
var architectures = []struct{ triple, architecture, variant string }{
	{"x86_64*", "amd64", ""},
	{"i386", "386", ""},
	{"i586", "386", ""},
	{"i686", "386", ""},
	{"aarch64", "arm64", ""},
	{"arm64", "arm64", ""},
	{"armv7*", "arm", "v7"},
	{"thumbv7*", "arm", "v7"},
	{"armv6*", "arm", "v6"},
	{"armv5*", "arm", "v5"},
	{"arm", "arm", ""},
	{"riscv64*", "riscv64", ""},
	{"powerpc64le", "ppc64le", ""},
	{"powerpc64", "ppc64", ""},
	{"s390x", "s390x", ""},
	{"loongarch64", "loong64", ""},
	{"mips64el", "mips64le", ""},
	{"mips64", "mips64", ""},
	{"mipsel", "mipsle", ""},
	{"mips", "mips", ""},
	{"wasm32", "wasm", ""},
}

// architecture returns the architecture of a carton that is for one platform.
// One that is for any, for several or for one that images have no name for is
// called amd64: an image must have an architecture, and who mounts a volume does
// not look at it.
func architecture(platforms []string) (name, variant string) {
	if len(platforms) == 1 {
		word, _, _ := strings.Cut(platforms[0], "-")
		for _, a := range architectures {
			prefix, open := strings.CutSuffix(a.triple, "*")
			if word == prefix || open && strings.HasPrefix(word, prefix) {
				return a.architecture, a.variant
			}
		}
	}
	return "amd64", ""
}
