package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// image is the image of one architecture.
type image struct{ arch, binary string }

// nonroot is the user that the program runs as, the number that distroless images
// have for it.
const nonroot = 65532

// exampleImage is a line of examples/kubernetes that names the image.
var exampleImage = regexp.MustCompile(`image: ` + regexp.QuoteMeta(imageName) + `:[0-9A-Za-z.-]+`)

// writeImages writes the images and the index that lists them, as an image layout
// with one tag, and returns the digest of the index.
func (r *release) writeImages(ctx context.Context, images []image) (string, error) {
	dir, err := layout.CreateDir(filepath.Join(r.out, "image"))
	if err != nil {
		return "", err
	}
	base, err := baseLayer(r.source.time)
	if err != nil {
		return "", err
	}
	index := ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
		Annotations: r.labels(),
	}
	for _, i := range images {
		desc, err := r.writeImage(ctx, dir, i, base)
		if err != nil {
			return "", err
		}
		index.Manifests = append(index.Manifests, desc)
	}
	desc, raw, err := document(ocispec.MediaTypeImageIndex, index)
	if err != nil {
		return "", err
	}
	return string(desc.Digest), dir.PutManifest(ctx, desc, raw, layout.PutOptions{Tags: []string{r.number()}})
}

// writeImage writes the image of one architecture. It is stored as a blob: the
// layout lists the index alone.
func (r *release) writeImage(ctx context.Context, dir *layout.Dir, i image, base []byte) (ocispec.Descriptor, error) {
	binary, err := os.ReadFile(i.binary)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	top, err := tarOf([]entry{{name: "usr/bin/" + program, mode: 0o755, content: binary}}, r.source.time)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	config := ocispec.Image{
		Created:  &r.source.time,
		Platform: ocispec.Platform{OS: "linux", Architecture: i.arch},
		Config: ocispec.ImageConfig{
			User: "65532:65532", Env: []string{"PATH=/usr/bin", "HOME=/home/nonroot"},
			Entrypoint: []string{"/usr/bin/" + program}, WorkingDir: "/work", Labels: r.labels(),
		},
		RootFS: ocispec.RootFS{Type: "layers"},
	}
	spec := layout.ArtifactSpec{Annotations: r.labels()}
	for _, content := range [][]byte{base, top} {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromBytes(content))
		packed, err := gzipOf(content)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		spec.Layers = append(spec.Layers, blob(ocispec.MediaTypeImageLayerGzip, packed))
	}
	_, raw, err := document(ocispec.MediaTypeImageConfig, config)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	spec.Config = blob(ocispec.MediaTypeImageConfig, raw)
	artifact, err := layout.NewArtifact(spec)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	for _, l := range append(spec.Layers, spec.Config, blob(artifact.MediaType, artifact.Manifest)) {
		if err := dir.Push(ctx, l, layout.Watch{}); err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	desc := artifact.Descriptor
	desc.Platform = &config.Platform
	return desc, nil
}

// baseLayer is what every image has beside the program.
func baseLayer(at time.Time) ([]byte, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // trusted with a condition, which a file of certificates can't say
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return tarOf([]entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{
			name: "etc/passwd", mode: 0o644, content: []byte(
				"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"),
		},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
		{name: "home/", mode: 0o755},
		{name: "home/nonroot/", mode: 0o700, uid: nonroot, gid: nonroot},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "work/", mode: 0o755, uid: nonroot, gid: nonroot},
	}, at)
}

// labels say what the image is. https://github.com/opencontainers/image-spec/blob/v1.1.1/annotations.md
func (r *release) labels() map[string]string {
	return map[string]string{
		ocispec.AnnotationTitle:    program,
		ocispec.AnnotationLicenses: "Apache-2.0",
		ocispec.AnnotationSource:   "https://github.com/carton-oci/carton-oci",
		ocispec.AnnotationVersion:  r.number(),
		ocispec.AnnotationRevision: r.source.commit,
		ocispec.AnnotationCreated:  r.source.time.Format(time.RFC3339),
	}
}

// document is a value as JSON.
func document(mediaType string, v any) (ocispec.Descriptor, []byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	return descriptor(mediaType, raw), raw, nil
}

func descriptor(mediaType string, content []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
}

func blob(mediaType string, content []byte) layout.Layer {
	return layout.Layer{
		Descriptor: descriptor(mediaType, content),
		Open: func(_ context.Context, off int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content[off:])), nil
		},
	}
}
