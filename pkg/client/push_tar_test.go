package client

import (
	"bytes"
	"os"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// TestTarLayersAreReadOnEveryPush: the digest of a tar layer is learnt by reading
// its members, verified, and what is pushed anew is read once more. No earlier push
// is believed: the folder that remembers uploads holds nothing that could change
// what is published.
func TestTarLayersAreReadOnEveryPush(t *testing.T) {
	files := map[string][]byte{
		"model/a.safetensors": append([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), bytes.Repeat([]byte("a"), 1<<20)...),
		"model/b.bin":         bytes.Repeat([]byte("b"), 1<<20),
		"model/config.json":   []byte("{}"),
	}
	reg := registrytest.New(t, registrytest.Config{})
	cache := t.TempDir()
	opts := Options{Registry: registry.Options{StateDir: cache, Credential: auth.StaticCredential("", auth.EmptyCredential)}}
	for _, tt := range []struct {
		ref   string
		reads int // of each member
	}{
		{"/org/m:1", 2},
		{"/org/m:1", 1},
		{"/org/m:2", 1},
		{"/org/other:1", 2},
	} {
		src := cartontest.New(files, nil)
		result, err := fresh(opts).PushSource(t.Context(), src, "sample", reg.Host+tt.ref, PushOptions{Mapping: convert.Options{Layers: convert.FormTar}})
		if err != nil {
			t.Fatal(err)
		}
		for path := range files {
			want := tt.reads
			if path == "model/a.safetensors" {
				want++ // its header, for the config
			}
			if got := src.Opens(path); got != want {
				t.Errorf("push to %s: %s was opened %d times, want %d", tt.ref, path, got, want)
			}
		}
		if tt.reads == 1 && result.BytesUploaded != 0 {
			t.Errorf("push to %s: sent %d bytes, want none", tt.ref, result.BytesUploaded)
		}
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "uploads" {
			t.Errorf("%s is remembered, want nothing but uploads", e.Name())
		}
	}
}
