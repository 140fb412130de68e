package containerd_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/containerd"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// pushImage pushes an image of one file, whose config says that the layer's tar
// has the digest diffID.
func pushImage(t *testing.T, s *testregistry.Server, tag, content string, diffID func(layer []byte) digest.Digest) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	repo, err := remote.NewRepository(s.Host + "/org/image")
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	config := push(t, repo, ocispec.MediaTypeImageConfig, "", ocispec.Image{
		Platform: ocispec.Platform{Architecture: "amd64", OS: "linux"},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{diffID(layer.Bytes())}},
	})
	push(t, repo, ocispec.MediaTypeImageManifest, tag, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config,
		Layers: []ocispec.Descriptor{push(t, repo, ocispec.MediaTypeImageLayer, "", layer.Bytes())},
	})
}

// push pushes bytes, or a value as JSON.
func push(t *testing.T, repo *remote.Repository, mediaType, tag string, value any) ocispec.Descriptor {
	t.Helper()
	raw, ok := value.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(value); err != nil {
			t.Fatal(err)
		}
	}
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

func TestAnImageIsPulledAndMounted(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	pushImage(t, s, "1", "content", digest.FromBytes)
	c := containerd.Start(t, containerd.Light)
	dir := c.Mount(t, s.Host+"/org/image:1")
	got, err := os.ReadFile(filepath.Join(dir, "file"))
	if err != nil || string(got) != "content" {
		t.Errorf("got %q and %v, want the file's content", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err == nil {
		t.Error("a file can be written, want a read-only mount")
	}
}

// What is proved with this containerd rests on its telling right from wrong.
func TestWhatIsWrongIsRefused(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	pushImage(t, s, "1", "content", func([]byte) digest.Digest { return digest.FromString("another tar") })
	c := containerd.Start(t, containerd.Light)
	for ref, want := range map[string]string{
		s.Host + "/org/image:1": "wrong diff id",
		s.Host + "/org/image:2": "not found",
	} {
		if err := c.Pull(ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
}
