package registry

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// What a tag points to and its bytes are one request, whatever the registry
// says of itself.
func TestResolveManifest(t *testing.T) {
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	for name, quirks := range map[string]registrytest.Quirks{
		"plain": {}, "no digest header": {NoDigestHeader: true}, "no head": {NoManifestHead: 405},
	} {
		reg := registrytest.New(t, registrytest.Config{Quirks: quirks})
		repo := dial(t, reg, "org/m", Options{})
		reg.AddManifest("org/m", desc.MediaType, content, "1")
		for _, reference := range []string{"1", desc.Digest.String()} {
			before := reg.Count("HEAD|GET", manifests)
			got, raw, err := repo.ResolveManifest(t.Context(), reference)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.Digest != desc.Digest || got.Size != desc.Size || got.MediaType != desc.MediaType || !bytes.Equal(raw, content) {
				t.Errorf("%s: got %v with %d bytes, want %v", name, got, len(raw), desc)
			}
			if n := reg.Count("HEAD|GET", manifests) - before; n != 1 {
				t.Errorf("%s: asked %d times, want once", name, n)
			}
		}
	}
}

func TestResolveManifestFails(t *testing.T) {
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	for name, c := range map[string]struct {
		quirks    registrytest.Quirks
		auth      registrytest.Auth
		reference string
		kind      error
	}{
		"no such tag":     {reference: "2", kind: layout.ErrNotFound},
		"denied":          {reference: "1", auth: registrytest.Auth{Denied: []string{"org/m"}}, kind: ErrDenied},
		"wrong digest":    {reference: "1", quirks: registrytest.Quirks{DigestHeader: testDigest}, kind: layout.ErrDigest},
		"another content": {reference: testDigest, quirks: registrytest.Quirks{}, kind: layout.ErrNotFound},
		"no reference":    {reference: "!", kind: ErrReference},
	} {
		reg := registrytest.New(t, registrytest.Config{Quirks: c.quirks, Auth: c.auth})
		repo := dial(t, reg, "org/m", Options{})
		reg.AddManifest("org/m", desc.MediaType, content, "1")
		if _, _, err := repo.ResolveManifest(t.Context(), c.reference); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.reference) {
			t.Errorf("%s: got %v, want %v", name, err, c.kind)
		}
	}
}
