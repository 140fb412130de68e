package layout

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Media types of what a reference can point to and that is no image manifest,
// or Docker's name for one.
const (
	typeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	typeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	typeDockerSchema1  = "application/vnd.docker.distribution.manifest.v1+json"
	typeDockerSigned   = "application/vnd.docker.distribution.manifest.v1+prettyjws"
)

// ParseManifest reads the bytes of an image manifest, OCI's or Docker's schema
// 2, and refuses whatever two readers could understand differently: duplicate
// keys, keys that differ from the specification's in case, data behind the
// object, layers beside manifests, text that is not UTF-8. Every descriptor
// passes [CheckDescriptor], and its data, where it has any, has its digest. The
// error wraps ErrFormat, ErrDigest for data, and ErrLimit for more than
// [MaxManifestBytes], [MaxLayers] or [MaxConfigBytes].
//
// An index carries the hint how to choose from it.
//
// https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md
func ParseManifest(b []byte) (*ocispec.Manifest, error) {
	if len(b) > MaxManifestBytes {
		return nil, errorf(ErrLimit, "image manifest", "is %d bytes, want at most %d", len(b), MaxManifestBytes)
	}
	if err := checkJSON(b, manifestShape); err != nil {
		return nil, inManifest(err)
	}
	if err := checkKind(b); err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, &Error{Object: "image manifest", Kind: ErrFormat, Err: err}
	}
	if m.Layers == nil {
		return nil, errorf(ErrFormat, "image manifest", "has no layers")
	}
	if err := checkManifest(&m); err != nil {
		return nil, err
	}
	return &m, nil
}

// ReadManifest fetches the image manifest that desc describes and parses it. It
// returns its bytes, of desc's digest, too. The media types of desc and of the
// body, where both state one, must be the same; an index, by either, is refused
// with the hint how to choose from it.
func ReadManifest(ctx context.Context, f Fetcher, desc ocispec.Descriptor) ([]byte, *ocispec.Manifest, error) {
	if desc.MediaType != "" {
		if err := checkManifestType(desc.MediaType); err != nil {
			return nil, nil, hintEntries(ctx, f, desc, err)
		}
	}
	if desc.Size > MaxManifestBytes {
		return nil, nil, errorf(ErrLimit, "image manifest", "is %d bytes, want at most %d", desc.Size, MaxManifestBytes)
	}
	b, err := f.FetchManifest(ctx, desc)
	if err != nil {
		return nil, nil, err
	}
	if err := checkContent(desc, b); err != nil {
		return nil, nil, err
	}
	m, err := ParseManifest(b)
	if err != nil {
		return nil, nil, err
	}
	if m.MediaType != "" && desc.MediaType != "" && m.MediaType != desc.MediaType {
		return nil, nil, errorf(ErrFormat, "image manifest", "says that its type is %s, came as %s",
			quote(m.MediaType), quote(desc.MediaType))
	}
	return b, m, nil
}

// resolveManifest is ResolveManifest of a place that has to be asked twice.
func resolveManifest(ctx context.Context, f Fetcher, reference string) (ocispec.Descriptor, []byte, error) {
	desc, err := f.Resolve(ctx, reference)
	if err != nil {
		return desc, nil, err
	}
	b, err := f.FetchManifest(ctx, desc)
	return desc, b, err
}

// maxHintedEntries is how many image manifests of an index are named.
const maxHintedEntries = 5

// hintEntries adds to the refusal of an index what can be chosen from it. Where
// that can't be read, the refusal stays as it is.
func hintEntries(ctx context.Context, f Fetcher, desc ocispec.Descriptor, refusal error) error {
	if desc.Size > MaxManifestBytes || desc.MediaType != ocispec.MediaTypeImageIndex &&
		desc.MediaType != typeDockerList {
		return refusal
	}
	b, err := f.FetchManifest(ctx, desc)
	var index ocispec.Index
	if err != nil || checkContent(desc, b) != nil || json.Unmarshal(b, &index) != nil {
		return refusal
	}
	for _, entry := range slices.Backward(index.Manifests[:min(len(index.Manifests), maxHintedEntries)]) {
		if CheckDigest(entry.Digest) != nil {
			continue
		}
		what := cmp.Or(entry.ArtifactType, entry.MediaType)
		if p := entry.Platform; p != nil && entry.ArtifactType == "" {
			what = p.OS + "/" + p.Architecture
		}
		refusal = hint.With(refusal, "it lists %s (%s)", entry.Digest, what)
	}
	return refusal
}

// checkContent wants a manifest's bytes to be what its descriptor says.
func checkContent(desc ocispec.Descriptor, content []byte) error {
	if len(content) > MaxManifestBytes {
		return errorf(ErrLimit, "image manifest", "is %d bytes, want at most %d", len(content), MaxManifestBytes)
	}
	if got := digest.FromBytes(content); int64(len(content)) != desc.Size || got != desc.Digest {
		return errorf(ErrDigest, "image manifest", "got %d bytes of %s, want %d of %s",
			len(content), got, desc.Size, quote(string(desc.Digest)))
	}
	return nil
}

// checkKind wants an image manifest and says what else it is.
func checkKind(b []byte) error {
	var kind struct {
		SchemaVersion json.RawMessage `json:"schemaVersion"`
		MediaType     string          `json:"mediaType"`
		Manifests     json.RawMessage `json:"manifests"`
		Layers        json.RawMessage `json:"layers"`
		FSLayers      json.RawMessage `json:"fsLayers"`
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return &Error{Object: "image manifest", Kind: ErrFormat, Err: err}
	}
	switch {
	case kind.Manifests != nil && kind.Layers != nil:
		return errorf(ErrFormat, "image manifest", "has both manifests and layers")
	case kind.FSLayers != nil || string(kind.SchemaVersion) == "1":
		return checkManifestType(typeDockerSchema1)
	case kind.Manifests != nil:
		return checkManifestType(ocispec.MediaTypeImageIndex)
	case kind.SchemaVersion == nil:
		return errorf(ErrFormat, "image manifest", "has no schemaVersion, want 2")
	case string(kind.SchemaVersion) != "2":
		return errorf(ErrFormat, "image manifest", "got the schemaVersion %s, want 2",
			quote(string(kind.SchemaVersion)))
	case kind.MediaType != "":
		return checkManifestType(kind.MediaType)
	}
	return nil
}

// checkManifestType wants the media type of an image manifest.
func checkManifestType(mediaType string) error {
	switch mediaType {
	case ocispec.MediaTypeImageManifest, typeDockerManifest:
		return nil
	case ocispec.MediaTypeImageIndex, typeDockerList:
		return hint.With(errorf(ErrFormat, "",
			"the reference points to an index of image manifests, want one image manifest"),
			"say which one by its digest: REPOSITORY@sha256:…")
	case typeDockerSchema1, typeDockerSigned:
		return hint.With(errorf(ErrFormat, "",
			"the reference points to a Docker schema 1 manifest, want an image manifest"),
			"schema 1 cannot hold an artifact; ask the registry for what it was made from")
	}
	return errorf(ErrFormat, "image manifest", "got the media type %s, want %s", quote(mediaType),
		ocispec.MediaTypeImageManifest)
}
