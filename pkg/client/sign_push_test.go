package client

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// A push that signs, ended at any manifest, leaves no tag at what is not signed: neither
// the artifact's nor the image form's, whether they are new or pointed to another model.
func TestNoTagPointsToWhatIsYetToBeSigned(t *testing.T) {
	signer, trust := keyPair(t)
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	push := func(src carton.Source, ref string) error {
		_, err := fresh().PushSource(t.Context(), src, "m", ref, PushOptions{
			Signer: signer, Mapping: convert.Options{Image: true, Layers: convert.FormRaw},
		})
		return err
	}
	for k, ended := 0, false; !ended; k++ {
		if k == 40 {
			t.Fatal("it never comes to an end")
		}
		repo := fmt.Sprintf("m%d", k)
		ref := r.Host + "/" + repo + ":1"
		if k%2 == 1 { // another model is there, signed
			if err := push(sample(), ref); err != nil {
				t.Fatal(err)
			}
		}
		r.Break(registrytest.Fault{Methods: "PUT", Path: "/" + repo + "/manifests/", After: k / 2, Times: -1, Effect: forbid})
		err := push(weights(), ref)
		r.Mend()
		ended = err == nil && k%2 == 1
		for _, tag := range []string{ref, ref + "-image"} {
			src, wrong := fresh().Open(t.Context(), tag, OpenOptions{Trust: trust})
			switch {
			case wrong == nil:
				src.Close()
			case !errors.Is(wrong, layout.ErrNotFound):
				t.Errorf("ended at manifest %d (%v): %v", k/2, err, wrong)
			}
		}
		if err := push(weights(), ref); err != nil {
			t.Errorf("run again behind manifest %d: %v", k/2, err)
		}
	}
}

// forbid is a registry that lets nobody write.
func forbid(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusForbidden)
}
