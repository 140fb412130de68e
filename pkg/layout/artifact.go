package layout

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ArtifactSpec is what an image manifest is made of.
type ArtifactSpec struct {
	// ArtifactType is the artifact's type; "" for an OCI image.
	ArtifactType string
	// Config is the config blob.
	Config Layer
	// Layers are the blobs in their order. Annotations of a layer are those of
	// its Descriptor.
	Layers []Layer
	// Subject is another image manifest that this one refers to, or nil.
	Subject *ocispec.Descriptor
	// Annotations are the image manifest's own.
	Annotations map[string]string
}

// NewArtifact makes the image manifest of spec. Its bytes are a function of the
// descriptors, types and annotations alone: JSON with the fields in the order
// of the specification, map keys sorted bytewise, no white space, and no escapes
// that JSON does not ask for, but for U+2028 and U+2029.
//
// Descriptors that [CheckDescriptor] refuses, one digest with two sizes, and
// text that is not UTF-8 are ErrFormat; more than [MaxLayers] layers and more
// than [MaxManifestBytes] bytes ErrLimit.
func NewArtifact(spec ArtifactSpec) (*Artifact, error) {
	m := ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: spec.ArtifactType,
		Config:       spec.Config.Descriptor,
		Layers:       make([]ocispec.Descriptor, 0, len(spec.Layers)),
		Subject:      spec.Subject,
		Annotations:  spec.Annotations,
	}
	for _, l := range spec.Layers {
		m.Layers = append(m.Layers, l.Descriptor)
	}
	if err := checkManifest(&m); err != nil {
		return nil, err
	}
	// Every byte as encoding/json writes it, escapes too: CRI-O (1.34.0) finds an
	// artifact by the digest of what it writes of the image manifest itself.
	raw, err := json.Marshal(&m)
	if err != nil {
		return nil, &Error{Object: "image manifest", Kind: ErrFormat, Err: err}
	}
	if len(raw) > MaxManifestBytes {
		return nil, errorf(ErrLimit, "image manifest", "is %d bytes, want at most %d", len(raw), MaxManifestBytes)
	}
	return &Artifact{
		Descriptor: ocispec.Descriptor{
			MediaType:    m.MediaType,
			ArtifactType: m.ArtifactType,
			Digest:       digest.FromBytes(raw),
			Size:         int64(len(raw)),
		},
		Manifest: raw,
		Config:   spec.Config,
		Layers:   spec.Layers,
	}, nil
}

// checkManifest holds what is asked of an image manifest that is written and of
// one that is read.
func checkManifest(m *ocispec.Manifest) error {
	if len(m.Layers) > MaxLayers {
		return errorf(ErrLimit, "image manifest", "has %d layers, want at most %d", len(m.Layers), MaxLayers)
	}
	descs := append([]ocispec.Descriptor{m.Config}, m.Layers...)
	if m.Subject != nil {
		descs = append(descs, *m.Subject)
	}
	sizes := make(map[digest.Digest]int64, len(descs))
	for _, d := range descs {
		if err := CheckDescriptor(d); err != nil {
			return inManifest(err)
		}
		if size, ok := sizes[d.Digest]; ok && size != d.Size {
			return errorf(ErrFormat, "image manifest", "%s has two sizes: %d and %d", d.Digest, size, d.Size)
		}
		sizes[d.Digest] = d.Size
		if err := checkData(d); err != nil {
			return inManifest(err)
		}
		if err := checkText(d.MediaType, d.ArtifactType, d.Annotations); err != nil {
			return inManifest(err)
		}
	}
	if m.Config.Size > MaxConfigBytes {
		return errorf(ErrLimit, "image manifest", "the config is %d bytes, want at most %d", m.Config.Size,
			MaxConfigBytes)
	}
	return inManifest(checkText(m.MediaType, m.ArtifactType, m.Annotations))
}

// checkData wants embedded content to be what the descriptor says.
func checkData(d ocispec.Descriptor) error {
	if d.Data == nil {
		return nil
	}
	if int64(len(d.Data)) != d.Size || digest.FromBytes(d.Data) != d.Digest {
		return errorf(ErrDigest, string(d.Digest), "embedded data does not match the descriptor")
	}
	return nil
}

func checkText(mediaType, artifactType string, annotations map[string]string) error {
	ok := utf8.ValidString(mediaType) && utf8.ValidString(artifactType)
	for k, v := range annotations {
		ok = ok && utf8.ValidString(k) && utf8.ValidString(v)
	}
	if !ok {
		return errorf(ErrFormat, "", "a type or annotation is not UTF-8")
	}
	return nil
}

// inManifest says that a descriptor's fault is in the image manifest.
func inManifest(err error) error {
	if err == nil {
		return nil
	}
	kind := ErrFormat
	if e, ok := err.(*Error); ok { //nolint:errorlint // made in this package, never wrapped
		kind = e.Kind
	}
	return errorf(kind, "image manifest", "%s", err)
}
