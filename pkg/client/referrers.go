package client

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ReferrersResult says what refers to an artifact. Its JSON is what `referrers --format
// json` prints.
type ReferrersResult struct {
	// Reference is what was asked for.
	Reference string `json:"reference"`
	// Digest is the manifest's that the referrers name as their subject.
	Digest digest.Digest `json:"digest"`
	// Referrers are in the order of the place. Each was fetched, and names the subject.
	Referrers []ReferrerInfo `json:"referrers"`
	// LeftOut says of what is listed and is no referrer why it isn't.
	LeftOut []string `json:"leftOut,omitempty"`
}

// ReferrerInfo is a manifest that names another one as its subject.
type ReferrerInfo struct {
	Digest       digest.Digest     `json:"digest"`
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Size         int64             `json:"size"` // of the manifest, in bytes
	Annotations  map[string]string `json:"annotations,omitempty"`
	// Files are its layers, where it is an image manifest that was fetched.
	Files []AttachedFile `json:"files,omitempty"`
}

// AttachedFile is a layer of a referrer.
type AttachedFile struct {
	// Name is the file's name, "" where the layer has none.
	Name      string        `json:"name,omitempty"`
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int64         `json:"size"` // in bytes
}

func newReferrerInfo(desc ocispec.Descriptor) ReferrerInfo {
	return ReferrerInfo{
		Digest: desc.Digest, MediaType: desc.MediaType, ArtifactType: desc.ArtifactType, Size: desc.Size,
		Annotations: desc.Annotations,
	}
}

// Referrers says what refers to an artifact: signatures, and what else was attached.
// With an artifactType, what is of that type. What is listed is fetched and judged, but
// nobody is asked who made it.
func (c *Client) Referrers(ctx context.Context, ref, artifactType string) (*ReferrersResult, error) {
	loc, err := parseArtifact(ref)
	if err != nil {
		return nil, fmt.Errorf("referrers: %w", err)
	}
	s, desc, _, err := c.resolve(ctx, loc, false)
	if err != nil {
		return nil, fmt.Errorf("referrers %s: %w", loc, err)
	}
	found, left, err := layout.ReadReferrers(ctx, s.store, desc, artifactType)
	if err != nil {
		return nil, fmt.Errorf("referrers %s: %w", loc, err)
	}
	result := &ReferrersResult{Reference: s.loc.String(), Digest: desc.Digest, Referrers: []ReferrerInfo{}}
	for _, r := range found {
		info := newReferrerInfo(r.Descriptor)
		if r.Manifest != nil {
			for _, l := range r.Manifest.Layers {
				info.Files = append(info.Files, AttachedFile{
					Name: l.Annotations[ocispec.AnnotationTitle], MediaType: l.MediaType, Digest: l.Digest,
					Size: l.Size,
				})
			}
		}
		result.Referrers = append(result.Referrers, info)
	}
	for _, err := range left {
		result.LeftOut = append(result.LeftOut, err.Error())
	}
	return result, nil
}
