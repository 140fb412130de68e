package layout

import (
	"encoding/json"
	"slices"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ParseIndex reads the bytes of an index as strictly as [ParseManifest] does those of
// an image manifest. Its entries are not judged: see [CheckDescriptor].
//
// https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md
func ParseIndex(b []byte) (*ocispec.Index, error) {
	var x ocispec.Index
	if err := parseIndex(b, &x); err != nil {
		return nil, err
	}
	return &x, nil
}

// parseIndex reads an index into x, an [ocispec.Index] or an [indexFile].
func parseIndex(b []byte, x any) error {
	if len(b) > MaxManifestBytes {
		return errorf(ErrLimit, "index", "is %d bytes, want at most %d", len(b), MaxManifestBytes)
	}
	if err := checkJSON(b, manifestShape); err != nil {
		return &Error{Object: "index", Kind: ErrFormat, Err: err}
	}
	var kind struct {
		SchemaVersion int             `json:"schemaVersion"`
		Manifests     json.RawMessage `json:"manifests"`
		Layers        json.RawMessage `json:"layers"`
	}
	err := json.Unmarshal(b, &kind)
	switch {
	case err != nil:
	case kind.Manifests == nil || kind.Layers != nil:
		return errorf(ErrFormat, "index", "has no manifests, or layers beside them")
	case kind.SchemaVersion != 2:
		return errorf(ErrFormat, "index", "got the schemaVersion %d, want 2", kind.SchemaVersion)
	default:
		err = json.Unmarshal(b, x)
	}
	if err != nil {
		return &Error{Object: "index", Kind: ErrFormat, Err: err}
	}
	return nil
}

// AddReferrers adds entries to an index that lists referrers, nil for one that there
// isn't yet, and reports whether that changed it. Entries that are there stay as they
// are, but for those that lack an artifactType or annotations that the new one has.
func AddReferrers(index []byte, entries ...ocispec.Descriptor) ([]byte, bool, error) {
	x := &indexFile{SchemaVersion: 2, MediaType: ocispec.MediaTypeImageIndex}
	if index != nil {
		if err := parseIndex(index, x); err != nil {
			return nil, false, err
		}
	}
	changed := index == nil
	at := map[digest.Digest]int{}
	for i := range x.Manifests {
		at[x.Manifests[i].Digest] = i
	}
	for _, entry := range entries {
		i, listed := at[entry.Digest]
		switch {
		case !listed:
			at[entry.Digest] = len(x.Manifests)
			x.Manifests = append(x.Manifests, indexEntry{Descriptor: entry})
		case x.Manifests[i].lacks(entry):
			x.Manifests[i] = indexEntry{Descriptor: entry}
		default:
			continue
		}
		changed = true
	}
	return x.bytes(changed, index)
}

// lacks reports whether another descriptor of the same manifest says more.
func (e *indexEntry) lacks(other ocispec.Descriptor) bool {
	return isVague(e.ArtifactType) && !isVague(other.ArtifactType) ||
		len(e.Annotations) == 0 && len(other.Annotations) > 0
}

// DropReferrer takes an entry out of an index that lists referrers, and reports whether
// it was there.
func DropReferrer(index []byte, dgst digest.Digest) ([]byte, bool, error) {
	x := &indexFile{}
	if err := parseIndex(index, x); err != nil {
		return nil, false, err
	}
	n := len(x.Manifests)
	x.Manifests = slices.DeleteFunc(x.Manifests, func(e indexEntry) bool { return e.Digest == dgst })
	return x.bytes(len(x.Manifests) != n, index)
}

// bytes returns an index as it is written, or as it was where it has not changed.
func (x *indexFile) bytes(changed bool, was []byte) ([]byte, bool, error) {
	if !changed {
		return was, false, nil
	}
	if x.Manifests == nil {
		x.Manifests = []indexEntry{}
	}
	b, err := jsonstream.Marshal(x, "")
	if err == nil && len(b) > MaxManifestBytes {
		err = errorf(ErrLimit, "index", "would be %d bytes with another entry, want at most %d", len(b),
			MaxManifestBytes)
	}
	return b, true, err
}
