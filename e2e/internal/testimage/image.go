// Package testimage makes container images of a few files, and puts them into a
// registry: what pods run in tests, and what a runtime has to tell from others.
package testimage

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// Image is an image of one layer. The zero value is an empty one.
type Image struct {
	// Files are executable, by path.
	Files map[string][]byte
	// Symlinks are targets, by path.
	Symlinks map[string]string
	// Folders are empty ones.
	Folders []string
	// Config says how to run it.
	Config ocispec.ImageConfig
	// DiffID is what the config says of the layer; "" is the truth.
	DiffID digest.Digest
}

// Push puts the image into the repository that ref names, over HTTP.
func (i Image) Push(t testing.TB, ref string) {
	t.Helper()
	layer := i.layer(t)
	diffID := i.DiffID
	if diffID == "" {
		diffID = digest.FromBytes(layer)
	}
	repo, err := remote.NewRepository(ref)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	config := push(t, repo, ocispec.MediaTypeImageConfig, "", encode(t, ocispec.Image{
		Platform: ocispec.Platform{Architecture: "amd64", OS: "linux"}, Config: i.Config,
		RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{diffID}},
	}))
	push(t, repo, ocispec.MediaTypeImageManifest, repo.Reference.Reference, encode(t, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config,
		Layers: []ocispec.Descriptor{push(t, repo, ocispec.MediaTypeImageLayer, "", layer)},
	}))
}

// layer is a tar of all that is in the image.
func (i Image) layer(t testing.TB) []byte {
	t.Helper()
	entries := map[string]tar.Header{}
	for name, b := range i.Files {
		entries[name] = tar.Header{Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(b))}
	}
	for name, target := range i.Symlinks {
		entries[name] = tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target}
	}
	for _, name := range i.Folders {
		entries[name] = tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}
	}
	for name := range maps.Clone(entries) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			entries[dir] = tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		h := entries[name]
		h.Name = name
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(i.Files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// push pushes a blob, or an image manifest as a tag.
func push(t testing.TB, repo *remote.Repository, mediaType, tag string, raw []byte) ocispec.Descriptor {
	t.Helper()
	desc := content.NewDescriptorFromBytes(mediaType, raw)
	var err error
	if tag == "" {
		err = repo.Push(t.Context(), desc, bytes.NewReader(raw))
	} else {
		err = repo.PushReference(t.Context(), desc, bytes.NewReader(raw), tag)
	}
	if err != nil {
		t.Fatal(err)
	}
	return desc
}
