package client

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// With Force a signature replaces a signature, and nothing else: not the model that is
// signed, under any of its names, and not the key.
func TestASignatureReplacesASignatureOnly(t *testing.T) {
	dir := t.TempDir()
	model, link, key := filepath.Join(dir, "m.carton"), filepath.Join(dir, "link"), filepath.Join(dir, "k.key")
	if err := errors.Join(carton.Assemble(t.Context(), model, weights(), carton.AssembleOptions{}),
		os.Symlink("m.carton", link), os.WriteFile(key, []byte("a key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	signer, _ := keyPair(t)
	for _, output := range []string{model, link, key} {
		before, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fresh().Sign(t.Context(), model, signer, SignOptions{Output: output, Force: true}); !errors.Is(err, carton.ErrExist) {
			t.Errorf("%s: got %v, want ErrExist", output, err)
		}
		if after, err := os.ReadFile(output); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s was replaced (%v)", output, err)
		}
	}
	for range 2 { // of another signer each time
		other, trust := keyPair(t)
		if _, err := fresh().Sign(t.Context(), model, other, SignOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
		open(t, model, OpenOptions{Trust: trust})
	}
}

// A signature that can't be written is refused before any is put beside the artifact.
func TestSignsNothingWhereTheModelCantBeSigned(t *testing.T) {
	s := storeTars(t, convert.Options{})
	s.manifest.Annotations = nil
	s.manifest.Layers = []ocispec.Descriptor{*s.layer(weightsTar)}
	s.put()
	signer, _ := keyPair(t)
	ref := s.Host + "/" + sourceRepo + ":1"
	result, err := fresh().Sign(t.Context(), ref, signer, SignOptions{Output: filepath.Join(t.TempDir(), "m.sig")})
	if err == nil || errors.Is(err, layout.ErrNotFound) {
		t.Errorf("got %+v, %v", result, err)
	}
	if left, err := fresh().Referrers(t.Context(), ref, ""); err != nil || len(left.Referrers) > 0 {
		t.Errorf("got the referrers %+v, %v, want none", left, err)
	}
}
