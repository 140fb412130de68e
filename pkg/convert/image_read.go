package convert

import (
	"fmt"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// imageTypes are what an image's layers are called, by how they are made.
// https://github.com/opencontainers/image-spec/blob/v1.1.1/layer.md
var imageTypes = map[format]string{
	formatTar:     ocispec.MediaTypeImageLayer,
	formatTarGzip: ocispec.MediaTypeImageLayerGzip,
	formatTarZstd: ocispec.MediaTypeImageLayerZstd,
}

// parseImageType reads the media type of an image's layer.
func parseImageType(mediaType string) (format, bool) {
	for f, t := range imageTypes {
		if t == mediaType {
			return f, true
		}
	}
	return "", false
}

// isMappedImage reports whether an image manifest is an image to who knows no
// more, and an artifact of this mapping: the image form of a carton, or an
// artifact that was pushed with the config of an image.
func isMappedImage(m *ocispec.Manifest) bool {
	return m.ArtifactType == "" && m.Config.MediaType == ocispec.MediaTypeImageConfig &&
		m.Annotations[AnnotationMapping] != "" && m.Annotations[AnnotationModelHash] != ""
}

// IsImage reports whether an image manifest is the image form of a carton, as
// [Build] and [Image] make it.
func IsImage(m *ocispec.Manifest) bool {
	return isMappedImage(m) && len(m.Layers) > 0 && !slices.ContainsFunc(m.Layers, func(d ocispec.Descriptor) bool {
		_, ok := parseImageType(d.MediaType)
		return !ok
	})
}

// withoutExtras returns an image manifest without the layers that are no
// member's, as an artifact of the mapping marks them. Such a layer is a file for
// people to read. One that programs unpack is no extra, whatever its mark: they
// would mount what no reader of cartons has looked at.
func withoutExtras(m *ocispec.Manifest) (*ocispec.Manifest, error) {
	extra := func(d ocispec.Descriptor) bool { return d.Annotations[AnnotationExtra] != "" }
	if m.Annotations[AnnotationMapping] == "" || !slices.ContainsFunc(m.Layers, extra) {
		return m, nil
	}
	for _, d := range m.Layers {
		if _, form, ok := parseMediaType(d.MediaType); extra(d) && (!ok || form != formatRaw) {
			return nil, &layout.Error{
				Object: d.Digest.String(), Kind: layout.ErrFormat,
				Msg: fmt.Sprintf("is a layer of type %.128q that is marked with %s: only plain files are", d.MediaType,
					AnnotationExtra),
			}
		}
	}
	members := *m
	members.Layers = slices.DeleteFunc(slices.Clone(m.Layers), extra)
	return &members, nil
}
