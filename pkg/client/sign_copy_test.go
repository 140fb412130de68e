package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// Where a signature is wanted an image form goes along that has one, and no other: with
// the model's MANIFEST alone somebody could give it another configuration.
func TestAnImageFormGoesAlongIfItIsSigned(t *testing.T) {
	signer, trust := keyPair(t)
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	ref := r.Host + "/m:1"
	if _, err := fresh().PushSource(t.Context(), weights(), "m", ref, PushOptions{Signer: signer}); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh().Image(t.Context(), ref, ImageOptions{}); err != nil { // nobody has signed it
		t.Fatal(err)
	}
	policy := fresh(Options{Policy: func(string, string) (*signature.Trust, string, error) { return trust, "policy.toml", nil }})
	for i, c := range []struct {
		name  string
		by    *Client
		opts  CopyOptions
		goes  bool
		wrong error
	}{
		{"nothing is wanted", fresh(), CopyOptions{}, true, nil},
		{"not signed", fresh(), CopyOptions{Trust: trust}, false, nil},
		{"not signed, by policy", policy, CopyOptions{}, false, nil},
		{"not signed, and named", fresh(), CopyOptions{Trust: trust, ImageTag: "1-image"}, false, signature.ErrNotSigned},
		{"signed", fresh(), CopyOptions{Trust: trust}, true, nil},
		{"signed, by policy", policy, CopyOptions{}, true, nil},
	} {
		if c.name == "signed" {
			if _, err := fresh().Sign(t.Context(), ref, signer, SignOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		to := fmt.Sprintf("%s/copy%d:1", r.Host, i)
		c.opts.Recursive = true
		copied, err := c.by.Copy(t.Context(), ref, to, c.opts)
		if !errors.Is(err, c.wrong) || (err == nil) != (c.wrong == nil) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.wrong)
			continue
		}
		_, there := fresh().Resolve(t.Context(), to+"-image")
		if (there == nil) != c.goes || there != nil && !errors.Is(there, layout.ErrNotFound) {
			t.Errorf("%s: the image form: %v, want it there: %t", c.name, there, c.goes)
		}
		if err == nil && strings.Contains(strings.Join(copied.Warnings, "\n"), "1-image does not go along: has no signature") == c.goes {
			t.Errorf("%s: got the warnings %q", c.name, copied.Warnings)
		}
	}
}
