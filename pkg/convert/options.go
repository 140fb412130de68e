package convert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Form says what kind of layer a member becomes.
type Form string

// The forms of layers.
const (
	// FormRaw: a layer is a member's bytes; small members are bundled as tar.
	FormRaw Form = "raw"
	// FormTar: a layer is a tar of one member, so that an OCI image can share it;
	// MANIFEST and carton.toml stay raw.
	FormTar Form = "tar"
)

// Family names the media types that are written. All families are read, in any
// mix.
type Family string

// The families of media types.
const (
	// FamilyCNAI is application/vnd.cnai.model.….
	FamilyCNAI Family = "cnai"
	// FamilyCNCF is application/vnd.cncf.model.…, the later name of the same
	// specification.
	FamilyCNCF Family = "cncf"
	// FamilyDraft is the letter of the specification's draft: weights as the bare
	// application/vnd.cnai.model.weight.v1, everything else as tar.
	FamilyDraft Family = "cnai-draft"
)

// Compression is how bundles are compressed. Weights never are.
type Compression string

// The compressions of bundles.
const (
	CompressNone Compression = "none"
	CompressZstd Compression = "zstd"
	CompressGzip Compression = "gzip"
)

// Compat is what of an artifact is written in another way for registries that
// take only what images have.
type Compat string

// The ways of writing an artifact.
const (
	// CompatNone: as the specification of model artifacts has it.
	CompatNone Compat = ""
	// CompatImageConfig: no artifactType, and the config of an image. Layers keep
	// their media types.
	CompatImageConfig Compat = "image-config"
	// CompatImage: the image form, in the place of the artifact. Its layers are an
	// image's too.
	CompatImage Compat = "image"
)

// Options say how a carton becomes an artifact. Together with the carton they
// determine every byte of it. The zero value is the default mapping.
type Options struct {
	// Layers is the form of layers; "" is FormRaw, or FormTar with Image.
	Layers Form
	// MediaTypes is the family of media types; "" is DefaultMediaTypes.
	MediaTypes Family
	// DefaultMediaTypes is the family where nobody asks for one, and "" is
	// FamilyCNAI. It asks for no form: an artifact is copied in whatever family it is.
	DefaultMediaTypes Family
	// Compress compresses bundles; "" is CompressNone. Other tools read only that.
	Compress Compression
	// BundleBelow bundles members that are no weights and smaller than this many
	// bytes. 0 lets the mapping choose the line; a negative value bundles empty
	// members only.
	BundleBelow int64
	// Image makes [Build] make the image form too, and an artifact with
	// FormTar keep to what an image may have, so that the two share every tar
	// layer: at most 120 layers.
	Image bool
	// ImageSubject makes the image manifest of the image form refer to the
	// artifact's, so that registries list it with that one.
	ImageSubject bool
	// Compat is how the artifact is written for registries that refuse others.
	Compat Compat
	// Readme adds copies of the carton's README and LICENSE under the names where
	// the page of a registry looks for them. Who reads the artifact leaves them out.
	Readme bool
	// Annotations are added to the image manifest's, and win.
	Annotations map[string]string
	// Created is the artifact's time of creation; the zero time is left out.
	// Commands take it from SOURCE_DATE_EPOCH and from nowhere else.
	Created time.Time
	// AllowInvalid makes an artifact of a carton whose carton.toml breaks the
	// rules too. What can't be read from it is left out of annotations and config.
	// Structure, names and hashes are never forgiven.
	AllowInvalid bool
	// LinkOrigins are the repositories that content may be mounted from because
	// LINKS names it there; the source's own needs no leave.
	LinkOrigins []layout.Origin
}

// KeepsForm reports whether nothing is asked of an artifact's form, so that a copy
// of one that exists will do. An image form beside it is none of its form, and a
// time of creation counts where an artifact is made.
func (o Options) KeepsForm() bool {
	return o.Layers == "" && o.MediaTypes == "" && o.Compress == "" && o.BundleBelow == 0 &&
		o.Compat == CompatNone && !o.Readme && len(o.Annotations) == 0
}

// withDefaults fills in what is "" and refuses what is no option.
func (o Options) withDefaults() (Options, error) {
	if o.Compat == CompatImage {
		if o.Image || o.ImageSubject || o.Readme {
			return o, errors.New("compat: an image alone has no artifact beside it to refer to or to have a readme: " +
				"it goes without Image, ImageSubject and Readme")
		}
		o.Image = true
	}
	if o.Image {
		o.Layers = cmp.Or(o.Layers, FormTar)
	}
	o.Layers = cmp.Or(o.Layers, FormRaw)
	o.MediaTypes = cmp.Or(o.MediaTypes, o.DefaultMediaTypes, FamilyCNAI)
	o.Compress = cmp.Or(o.Compress, CompressNone)
	_, family := families[o.MediaTypes]
	switch {
	case o.Layers != FormRaw && o.Layers != FormTar:
		return o, fmt.Errorf("layers: got %q, want %s or %s", o.Layers, FormRaw, FormTar)
	case !family:
		return o, fmt.Errorf("media types: got %q, want %s, %s or %s", o.MediaTypes, FamilyCNAI, FamilyCNCF,
			FamilyDraft)
	case !slices.Contains([]Compression{CompressNone, CompressZstd, CompressGzip}, o.Compress):
		return o, fmt.Errorf("compression: got %q, want %s, %s or %s", o.Compress, CompressNone, CompressZstd,
			CompressGzip)
	case !slices.Contains([]Compat{CompatNone, CompatImageConfig, CompatImage}, o.Compat):
		return o, fmt.Errorf("compat: got %q, want %s, %s or nothing", o.Compat, CompatImageConfig, CompatImage)
	case o.Readme && o.MediaTypes == FamilyDraft:
		return o, fmt.Errorf("readme: %s has no media type for it, want %s or %s", FamilyDraft, FamilyCNAI, FamilyCNCF)
	}
	return o, nil
}

// maxLayers returns the most layers that the artifact may have. An image that
// shares its tar layers has one layer more than they are: a family that keeps
// MANIFEST raw has that in it.
func (o Options) maxLayers() int {
	switch {
	case !o.Image || o.Layers != FormTar:
		return maxLayers
	case families[o.MediaTypes].rawOther:
		return maxImageLayers
	}
	return maxImageLayers - 1
}
