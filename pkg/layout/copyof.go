package layout

import (
	"cmp"
	"context"
	"io"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// CopyOf returns what a place has under desc, to be pushed elsewhere as it is: an
// artifact or image of any kind, or an index, which has no blobs of its own. raw is
// its manifest; from are repositories that blobs can be mounted from. entries are what
// an index lists, to be pushed before it.
//
// It says of the content that it has its digests, and nothing else.
func CopyOf(
	f Fetcher, desc ocispec.Descriptor, raw []byte, from ...Origin,
) (a *Artifact, entries []ocispec.Descriptor, err error) {
	if err := checkContent(desc, raw); err != nil {
		return nil, nil, err
	}
	a = &Artifact{Descriptor: desc, Manifest: raw}
	if IsIndex(desc.MediaType) {
		x, err := ParseIndex(raw)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range x.Manifests {
			if err := CheckDescriptor(e); err != nil {
				return nil, nil, err
			}
			entries = append(entries, plainDescriptor(e))
		}
		a.ArtifactType = x.ArtifactType
		return a, entries, nil
	}
	m, err := ParseManifest(raw)
	if err != nil {
		return nil, nil, err
	}
	if m.MediaType != "" && m.MediaType != desc.MediaType {
		return nil, nil, errorf(ErrFormat, "image manifest", "says that its type is %s, came as %s", quote(m.MediaType),
			quote(desc.MediaType))
	}
	a.ArtifactType, a.Config = m.ArtifactType, blobOf(f, m.Config, "config", from)
	for _, l := range m.Layers {
		a.Layers = append(a.Layers, blobOf(f, l, l.Annotations[ocispec.AnnotationTitle], from))
	}
	return a, nil, nil
}

// IsIndex reports whether a media type is that of an index, OCI's or Docker's.
func IsIndex(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageIndex || mediaType == typeDockerList
}

// blobOf is a blob of a place.
func blobOf(f Fetcher, desc ocispec.Descriptor, name string, from []Origin) Layer {
	open := func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
		if off == desc.Size { // there is no range to ask for
			return io.NopCloser(strings.NewReader("")), nil
		}
		return f.OpenRange(ctx, desc, off, n)
	}
	return Layer{
		Descriptor: desc, Name: cmp.Or(name, string(desc.Digest)), Origins: from, OpenRange: open,
		Open: func(ctx context.Context, off int64) (io.ReadCloser, error) { return open(ctx, off, -1) },
	}
}
