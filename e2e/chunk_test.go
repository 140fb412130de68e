package e2e

import (
	"net/http"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// --chunk-size is for registries and proxies that refuse large requests: no
// request carries more, and the registry has the same artifact in the end.
func TestUploadInChunks(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	u := newUser(t)
	m := newModel(map[string]string{"model/weights.bin": random("weights", 5_500_000)})
	m.write(t, u.path("m.carton"))
	whole := u.push(t, "m.carton", s.Host+"/org/whole:1")
	s.Traffic.Reset()
	chunked := u.push(t, "--chunk-size", "1MB", "m.carton", s.Host+"/org/chunked:1")
	if chunked.Digest != whole.Digest {
		t.Errorf("got the digest %s, want %s", chunked.Digest, whole.Digest)
	}
	chunks := 0
	for _, r := range s.Traffic.Requests() {
		if r.Kind != testregistry.Upload {
			continue
		}
		if r.Method == http.MethodPatch {
			chunks++
		}
		if r.In > 1_000_000 {
			t.Errorf("a request of %d bytes, want at most 1000000: %s", r.In, r)
		}
	}
	if chunks != 6 {
		t.Errorf("got %d chunks, want 6", chunks)
	}
}
