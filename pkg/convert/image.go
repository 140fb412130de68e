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
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ErrNoImage: a carton that has no image form. The error is a [*carton.Error]
// that names the member.
var ErrNoImage = errors.New("has no image form")

// Forms are the artifact of a carton, and the image form beside it.
type Forms struct {
	Artifact *layout.Artifact
	// Layers tells what the artifact's layers hold.
	Layers []PlannedLayer
	// Notes say what is wrong with the weights, which are pushed as they are.
	Notes []inspect.Note
	// Image is an OCI image that unpacks to the carton; nil without Options.Image.
	Image *layout.Artifact
	// ImageLayers tells what the image's layers hold.
	ImageLayers []PlannedLayer
}

// BuildForms is [Build] that makes the image form too, where opts ask for it. Of
// an artifact with FormTar the image shares every tar layer; MANIFEST and
// carton.toml, which are raw there, are one small tar more. Of one with FormRaw
// the image has all its layers for itself.
//
// A member that no image can hold is [ErrNoImage].
func BuildForms(ctx context.Context, src carton.Source, opts Options) (*Forms, error) {
	return buildForms(ctx, src, opts, opts.Image)
}

func buildForms(ctx context.Context, src carton.Source, opts Options, image bool) (*Forms, error) {
	b, err := newBuilder(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	plan, err := b.plan()
	if err != nil {
		return nil, err
	}
	alone := b.opts.Compat == CompatImage
	image = image || alone
	forms := &Forms{}
	if forms.Layers, err = plannedLayers(src, plan, b.opts); err != nil {
		return nil, err
	}
	var imagePlan []planned
	if image {
		if imagePlan, err = b.planImage(plan); err != nil { // before anything is read
			return nil, err
		}
	}
	parts, err := b.build(ctx, plan)
	if err != nil {
		return nil, err
	}
	forms.Artifact, err = b.artifact(ctx, parts)
	forms.Notes = b.notes
	if err != nil || !image {
		return forms, err
	}
	if parts, err = b.build(ctx, imagePlan); err != nil {
		return nil, err
	}
	spec := imageSpec{annotations: b.annotations, layers: imageLayers(parts), diffIDs: parts.diffIDs}
	spec.config = b.imageConfig(parts.diffIDs)
	if b.opts.ImageSubject {
		spec.subject = &forms.Artifact.Descriptor
	}
	if forms.ImageLayers, err = b.plannedImage(imagePlan); err != nil {
		return nil, err
	}
	if forms.Image, err = spec.build(); err != nil || !alone {
		return forms, err
	}
	return &Forms{Artifact: forms.Image, Layers: forms.ImageLayers}, nil
}

// headName is what the first tar of an image is called where people see it.
const headName = bundleFolder + "carton.tar"

// planImage cuts the carton into the layers of its image: in front one tar of
// what is raw in an artifact of tar layers, MANIFEST and carton.toml, and of the
// symlink models; then that artifact's tar layers in their order.
func (b *builder) planImage(plan []planned) ([]planned, error) {
	if b.opts.Layers == FormRaw {
		own := b.opts
		own.Layers, own.MediaTypes, own.Image = FormTar, FamilyCNAI, true
		var err error
		if plan, err = newPlanner(b.members, rolesOf(b.info), own).layers(); err != nil {
			return nil, err
		}
	}
	head := b.head()
	var tars []planned
	for _, l := range plan {
		switch {
		case l.extra != nil:
		case l.format != formatRaw:
			tars = append(tars, l)
		default:
			head.manifest = head.manifest || l.manifest
			head.members = append(head.members, l.members...)
		}
	}
	if head.holdsAny() {
		tars = append([]planned{head}, tars...)
	}
	return tars, nil
}

// head begins the first tar of an image.
func (b *builder) head() planned {
	alias := hasAlias(func(yield func(string) bool) {
		for i := range b.members {
			if !yield(b.members[i].Path) {
				return
			}
		}
	})
	return planned{name: headName, category: categoryConfig, format: formatTar, alias: alias}
}

func (l *planned) holdsAny() bool { return l.manifest || l.alias || l.members != nil }

// plannedImage tells what the layers of an image's plan hold.
func (b *builder) plannedImage(plan []planned) ([]PlannedLayer, error) {
	layers, err := plannedLayers(b.src, plan, b.opts)
	for i := range layers {
		layers[i].MediaType = imageTypes[plan[i].format]
	}
	return layers, err
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

// imageLayers returns the layers as an image has them: with its media types, and
// of the annotations the one that lists members.
func imageLayers(parts *built) []layout.Layer {
	layers := make([]layout.Layer, len(parts.layers))
	for i, l := range parts.layers {
		layers[i] = imageLayer(l, parts.plan[i].format)
	}
	return layers
}

func imageLayer(l layout.Layer, f format) layout.Layer {
	list := l.Annotations[AnnotationMembers]
	l.MediaType, l.Annotations = imageTypes[f], nil
	if list != "" {
		l.Annotations = map[string]string{AnnotationMembers: list}
	}
	return l
}

// imageSpec is what an image manifest is made of.
type imageSpec struct {
	annotations map[string]string
	config      layout.Layer
	layers      []layout.Layer
	diffIDs     []digest.Digest
	subject     *ocispec.Descriptor
}

// build makes the image manifest, and refuses one that no runtime would mount.
func (s *imageSpec) build() (*layout.Artifact, error) {
	bad := func(text string, args ...any) error {
		return &layout.Error{Object: "image", Kind: layout.ErrFormat, Msg: fmt.Sprintf(text, args...)}
	}
	switch {
	case len(s.layers) > maxImageLayers:
		return nil, bad("has %d layers, want at most %d", len(s.layers), maxImageLayers)
	case len(s.diffIDs) != len(s.layers):
		return nil, bad("has %d layers and %d digests of them without compression", len(s.layers), len(s.diffIDs))
	}
	for i, l := range s.layers {
		f, ok := parseImageType(l.MediaType)
		if !ok {
			return nil, bad("has a layer of type %q", l.MediaType)
		}
		if l.Digest == "" || s.diffIDs[i] == "" {
			return nil, bad("the layer %s was not read", l.Name)
		}
		if err := layout.CheckDigest(s.diffIDs[i]); err != nil {
			return nil, err
		}
		if f == formatTar && s.diffIDs[i] != l.Digest {
			return nil, bad("layer %s is not compressed, but has another digest without compression: %s", l.Digest, s.diffIDs[i])
		}
	}
	return layout.NewArtifact(layout.ArtifactSpec{
		Config: s.config, Layers: s.layers, Subject: s.subject, Annotations: s.annotations,
	})
}

// imageConfig makes the config of an image of the carton.
func (b *builder) imageConfig(diffIDs []digest.Digest) layout.Layer {
	return imageConfig(b.info, b.opts.Created, diffIDs)
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
	b := marshal(c)
	return layout.Layer{
		Descriptor: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig, Digest: digest.FromBytes(b), Size: int64(len(b))},
		Name:       "image config",
		Open:       bytesOpener(b),
	}
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
