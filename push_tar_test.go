package cartonoci

import (
	"bytes"
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// TestTarLayersAreHashedOnce: the digest of a tar layer is learnt by reading its
// members, once. The first push reads each twice, to learn and to send; a push of
// the same members to another place once; and one of what is there, none.
func TestTarLayersAreHashedOnce(t *testing.T) {
	files := map[string][]byte{
		"model/a.safetensors": append([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), bytes.Repeat([]byte("a"), 1<<20)...),
		"model/b.bin":         bytes.Repeat([]byte("b"), 1<<20),
		"model/config.json":   []byte("{}"),
	}
	reg := registrytest.New(t, registrytest.Config{})
	opts := PushOptions{
		Options: Options{CacheDir: t.TempDir()},
		Mapping: convert.Options{Layers: convert.FormTar},
	}
	opts.Registry.Credential = auth.StaticCredential("", auth.EmptyCredential)
	for _, tt := range []struct {
		ref   string
		reads int // of each member
	}{
		{"/org/m:1", 2},
		{"/org/m:1", 0},
		{"/org/m:2", 0},
		{"/org/other:1", 1},
	} {
		src := cartontest.New(files, nil)
		result, err := PushSource(t.Context(), src, "sample", reg.Host+tt.ref, opts)
		if err != nil {
			t.Fatal(err)
		}
		for path := range files {
			want := tt.reads
			if tt.reads == 2 && path == "model/a.safetensors" {
				want++ // its header, for the config
			}
			if got := src.Opens(path); got != want {
				t.Errorf("push to %s: %s was opened %d times, want %d", tt.ref, path, got, want)
			}
		}
		if opened := src.Opened(); tt.reads == 0 && slices.ContainsFunc(opened, func(p string) bool { return p != "carton.toml" }) {
			t.Errorf("push to %s: read %q, want carton.toml alone", tt.ref, opened)
		}
		if tt.reads == 0 && result.BytesUploaded != 0 {
			t.Errorf("push to %s: sent %d bytes, want none", tt.ref, result.BytesUploaded)
		}
	}
}
