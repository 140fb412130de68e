package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// Artifacts as other programs make them, byte by byte, without the library under
// test.

// artifact is one of them.
type artifact struct {
	artifactType, configType string
	config                   string
	layers                   []artifactLayer
}

type artifactLayer struct {
	mediaType   string
	annotations map[string]string
	data        string
}

// put pushes the artifact, each blob once.
func (a artifact) put(t *testing.T, s *testregistry.Server, ref string) {
	t.Helper()
	repo := orasRepository(t, s.Host+"/"+ref)
	keep := func(mediaType, data string) ocispec.Descriptor {
		desc := content.NewDescriptorFromBytes(mediaType, []byte(data))
		if there, err := repo.Blobs().Exists(t.Context(), desc); err != nil {
			t.Fatal(err)
		} else if !there {
			if err := repo.Blobs().Push(t.Context(), desc, strings.NewReader(data)); err != nil {
				t.Fatal(err)
			}
		}
		return desc
	}
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: a.artifactType, Config: keep(a.configType, a.config),
	}
	for _, l := range a.layers {
		desc := keep(l.mediaType, l.data)
		desc.Annotations = l.annotations
		m.Layers = append(m.Layers, desc)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	desc := content.NewDescriptorFromBytes(m.MediaType, raw)
	if err := repo.PushReference(t.Context(), desc, bytes.NewReader(raw), repo.Reference.Reference); err != nil {
		t.Fatal(err)
	}
}

// family is "cnai" or "cncf".
type family string

func (f family) artifact(layers ...artifactLayer) artifact {
	return artifact{
		artifactType: fmt.Sprintf("application/vnd.%s.model.manifest.v1+json", f),
		configType:   fmt.Sprintf("application/vnd.%s.model.config.v1+json", f),
		config:       foreignConfig(layers, "diffIds"), layers: layers,
	}
}

// foreignConfig is modctl's config: with a time, and the names of diffIds that
// it has used.
func foreignConfig(layers []artifactLayer, diffIDs string) string {
	ids := []digest.Digest{}
	for _, l := range layers {
		ids = append(ids, digest.FromString(l.data))
	}
	config, _ := json.Marshal(map[string]any{
		"descriptor": map[string]any{"createdAt": "2025-07-14T09:21:07.123456789Z", "name": "tiny", "family": "tiny", "licenses": []string{"MIT"}},
		"config":     map[string]any{"architecture": "transformer", "format": "safetensors", "paramSize": "8B", "precision": "bfloat16"},
		"modelfs":    map[string]any{"type": "layers", diffIDs: ids},
	})
	return string(config)
}

// annotations are what modctl says of a file: where it is, and what it was on
// the machine that it was pushed from.
func (f family) annotations(name, data string) map[string]string {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return map[string]string{
		fmt.Sprintf("org.%s.model.filepath", f): name,
		fmt.Sprintf("org.%s.model.file.metadata+json", f): fmt.Sprintf(
			`{"name":%q,"mode":436,"uid":1000,"gid":1000,"size":%d,"mtime":"2025-07-14T11:20:59.5+02:00","typeflag":48}`, base, len(data)),
		fmt.Sprintf("org.%s.model.file.mediatype.untested", f): "true",
	}
}

// raw is a file as a blob.
func (f family) raw(kind, name, data string) artifactLayer {
	return artifactLayer{fmt.Sprintf("application/vnd.%s.model.%s.v1.raw", f, kind), f.annotations(name, data), data}
}

// tar is a file in a tar of its own, compressed by "", "gzip" or "zstd".
func (f family) tar(kind, name, data, compression string) artifactLayer {
	mediaType := fmt.Sprintf("application/vnd.%s.model.%s.v1.tar", f, kind)
	blob := hostTar(map[string]string{name: data})
	switch compression {
	case "gzip":
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, blob)
		_ = w.Close()
		mediaType, blob = mediaType+"+gzip", b.String()
	case "zstd":
		w, _ := zstd.NewWriter(nil)
		mediaType, blob = mediaType+"+zstd", string(w.EncodeAll([]byte(blob), nil))
	}
	return artifactLayer{mediaType, f.annotations(name, data), blob}
}

// hostTar is a tar with the owners, modes and times of the machine that it was
// made on.
func hostTar(files map[string]string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o664, Uid: 1000, Gid: 1000,
			Uname: "ubuntu", Gname: "ubuntu", ModTime: time.Date(2025, 7, 14, 9, 20, 59, 5e8, time.UTC), Format: tar.FormatPAX,
		}
		_ = w.WriteHeader(h)
		_, _ = io.WriteString(w, files[name])
	}
	_ = w.Close()
	return b.String()
}
