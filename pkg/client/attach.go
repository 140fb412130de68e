package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"mime"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// AttachOptions say what a file is attached as.
type AttachOptions struct {
	// ArtifactType says what the document is, as a media type; it must be set.
	ArtifactType string
	// MediaType is the file's own; "" is ArtifactType.
	MediaType string
	// Annotations are those of the manifest.
	Annotations map[string]string
	// Created is the manifest's creation time; zero leaves it out, so that a file that is
	// attached twice is one referrer.
	Created time.Time
	// DryRun says what would be attached, and sends nothing.
	DryRun bool
	// Progress, which may be nil, is told of the transfer.
	Progress progress.Func
}

// AttachResult says what was attached. Its JSON is what `attach --format json` prints.
type AttachResult struct {
	// Reference is where the referrer is, by its digest.
	Reference string `json:"reference"`
	// Digest is its image manifest's.
	Digest digest.Digest `json:"digest"`
	// Subject is what it was attached to.
	Subject struct {
		Reference string        `json:"reference"`
		Digest    digest.Digest `json:"digest"`
	} `json:"subject"`
	// ArtifactType says what the document is.
	ArtifactType string `json:"artifactType"`
	// File is the document.
	File AttachedFile `json:"file"`
	// BytesUploaded counts the bytes of blobs that went out.
	BytesUploaded int64 `json:"bytesUploaded"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// DryRun: nothing was sent.
	DryRun bool `json:"dryRun,omitempty"`
}

// Attach puts a file beside what ref stands for, as a referrer: an artifact of one layer
// that names it as its subject. Its bytes follow from file, name and options, so that
// attaching it again sends nothing and makes nothing new.
//
// https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md#guidelines-for-artifact-usage
func (c *Client) Attach(ctx context.Context, ref, file string, opts AttachOptions) (*AttachResult, error) {
	start := time.Now()
	loc, err := parseArtifact(ref)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	if opts.MediaType == "" {
		opts.MediaType = opts.ArtifactType
	}
	for _, text := range []string{opts.ArtifactType, opts.MediaType} {
		if _, params, err := mime.ParseMediaType(text); err != nil || len(params) > 0 || strings.Count(text, "/") != 1 {
			return nil, fmt.Errorf("attach %s: %w", loc,
				location.Errorf(text, "is no media type, want one such as application/spdx+json"))
		}
	}
	s, subject, _, err := c.resolve(ctx, loc, false)
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", loc, err)
	}
	result, err := s.attach(ctx, subject, file, opts)
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", loc, err)
	}
	result.Seconds = seconds(start)
	return result, nil
}

// attach pushes a file as a referrer of subject.
func (s *site) attach(
	ctx context.Context, subject ocispec.Descriptor, file string, opts AttachOptions,
) (*AttachResult, error) {
	layer, err := fileLayer(file, opts.MediaType)
	if err != nil {
		return nil, err
	}
	annotations := maps.Clone(opts.Annotations)
	if !opts.Created.IsZero() {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[ocispec.AnnotationCreated] = opts.Created.UTC().Format(time.RFC3339)
	}
	art, err := newReferrer(subject, opts.ArtifactType, layer, annotations)
	if err != nil {
		return nil, err
	}
	at := s.loc.Untagged()
	at.Digest = art.Digest
	result := &AttachResult{
		Reference: at.String(), Digest: art.Digest, ArtifactType: opts.ArtifactType, DryRun: opts.DryRun,
		File: AttachedFile{Name: layer.Name, MediaType: layer.MediaType, Digest: layer.Digest, Size: layer.Size},
	}
	result.Subject.Reference, result.Subject.Digest = s.loc.String(), subject.Digest
	if opts.DryRun {
		return result, s.store.CheckArtifact(ctx, art)
	}
	pushed, err := layout.Push(ctx, s.store, art, layout.PushOptions{Progress: opts.Progress})
	if err != nil {
		return nil, err
	}
	result.BytesUploaded = pushed.BytesUploaded
	return result, nil
}

// newReferrer makes a referrer of subject with one layer.
func newReferrer(
	subject ocispec.Descriptor, artifactType string, layer layout.Layer, annotations map[string]string,
) (*layout.Artifact, error) {
	empty := layout.Layer{
		Descriptor: ocispec.DescriptorEmptyJSON, Name: "config",
		Open: layout.OpenBytes(ocispec.DescriptorEmptyJSON.Data),
	}
	empty.Data = nil
	return layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: artifactType, Config: empty, Layers: []layout.Layer{layer}, Annotations: annotations,
		Subject: &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	})
}

// fileLayer reads a file once, to learn its digest, and is it as a layer.
func fileLayer(name, mediaType string) (layout.Layer, error) {
	f, err := localfile.Open(name)
	if err != nil {
		return layout.Layer{}, err
	}
	defer f.Close()
	src := &iox.Source{R: f}
	dgst, err := digest.SHA256.FromReader(src)
	if err != nil {
		return layout.Layer{}, fmt.Errorf("read %s: %w", name, err)
	}
	title := filepath.Base(name)
	return layout.Layer{
		Name: title,
		Descriptor: ocispec.Descriptor{
			MediaType: mediaType, Digest: dgst, Size: src.N,
			Annotations: map[string]string{ocispec.AnnotationTitle: title},
		},
		Open: func(_ context.Context, off int64) (io.ReadCloser, error) {
			f, err := localfile.Open(name)
			if err != nil {
				return nil, err
			}
			if _, err := f.Seek(off, io.SeekStart); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		},
	}, nil
}
