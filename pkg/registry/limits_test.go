package registry

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// limited is an artifact with layers of the sizes.
func limited(sizes ...int64) *layout.Artifact {
	a := &layout.Artifact{Manifest: []byte("{}")}
	for i, size := range sizes {
		a.Layers = append(a.Layers, layout.Layer{
			Descriptor: ocispec.Descriptor{Digest: testDigest, Size: size}, Name: fmt.Sprintf("model/%d.safetensors", i),
		})
	}
	return a
}

// TestLayerLimits: at each registry that is known, the largest layer passes, and
// one byte more does not. Nothing is sent.
func TestLayerLimits(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for host, most := range map[string]int64{
		"ghcr.io":                           10_000_000_000,
		"ghcr.io:443":                       10_000_000_000,
		"ghcr.io:8443":                      0,
		"1.dkr.ecr.us-east-1.amazonaws.com": 52_000 * mib,
		"public.ecr.aws":                    10_000 * mib,
		"me.azurecr.io":                     200 * gib,
		"docker.io":                         0,
		"quay.io":                           0,
		"europe-docker.pkg.dev":             0,
		"gcr.io":                            0,
		"harbor.example":                    0,
	} {
		repo := offline(t, host)
		if most == 0 {
			most = 1 << 60
		} else {
			err := repo.CheckArtifact(t.Context(), limited(5, most+1, most, most+2))
			checkError(t, err, layout.ErrLimit, "model/1.safetensors: got "+fmt.Sprint(most+1)+" bytes, want at most "+fmt.Sprint(most), "SIZE cuts safetensors")
			if !strings.Contains(err.Error(), repo.host.behaviour.name) {
				t.Errorf("%s: %q does not say whose limit it is", host, err)
			}
			if hints := hint.Of(err); !strings.Contains(fmt.Sprint(hints), "1 more layers") {
				t.Errorf("%s: got the hints %q", host, hints)
			}
		}
		if err := repo.CheckArtifact(t.Context(), limited(0, most)); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// offline is a repository whose registry can't be reached.
func offline(t *testing.T, host string) *Repository {
	t.Helper()
	return repositoryAt(t, host, "org/m", Options{HTTPClient: &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		t.Errorf("%s %s was sent", req.Method, req.URL)
		return nil, errors.New("offline")
	})}})
}

func TestOtherLimits(t *testing.T) {
	ecr := offline(t, "1.dkr.ecr.us-east-1.amazonaws.com")
	if err := ecr.CheckArtifact(t.Context(), limited(make([]int64, 500)...)); err != nil {
		t.Error(err)
	}
	checkError(t, ecr.CheckArtifact(t.Context(), limited(make([]int64, 501)...)), layout.ErrLimit, "got 501 layers, want at most 500", "BundleBelow")
	anywhere := offline(t, "registry.example")
	a := limited(make([]int64, 5000)...)
	a.Manifest = make([]byte, layout.MaxManifestBytes)
	if err := anywhere.CheckArtifact(t.Context(), a); err != nil {
		t.Error(err)
	}
	a.Manifest = append(a.Manifest, 0)
	checkError(t, anywhere.CheckArtifact(t.Context(), a), layout.ErrLimit, "got 4194305 bytes, want at most 4194304", "BundleBelow")
	nameless := limited(1 << 62)
	nameless.Layers[0].Name = ""
	checkError(t, offline(t, "ghcr.io").CheckArtifact(t.Context(), nameless), layout.ErrLimit, testDigest, "")
}

// TestPushAsksForLimits: a push of what is too large sends nothing, whoever has put
// the repository into a struct.
func TestPushAsksForLimits(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	repo.host.behaviour = behaviour{name: "Example", layer: 10}
	config, blob := []byte("{}"), random(1, 11)
	a, err := layout.NewArtifact(layout.ArtifactSpec{
		Config: layout.Layer{Descriptor: describeBytes(config), Open: opener(config)},
		Layers: []layout.Layer{{Descriptor: describeBytes(blob), Open: opener(blob), Name: "model/w"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wrapped := struct{ layout.Store }{repo}
	_, err = layout.Push(t.Context(), wrapped, a, layout.PushOptions{Tags: []string{"v1"}, NoClobber: true})
	checkError(t, err, layout.ErrLimit, "model/w: got 11 bytes, want at most 10", "")
	if n := len(reg.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestPushTellsBytes: what went out and what was there, through the whole push.
func TestPushTellsBytes(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	opts := Options{StateDir: t.TempDir()}
	blob := random(1, 8<<20)
	halfway(t, reg, opts, blob)
	config := []byte("{}")
	a, err := layout.NewArtifact(layout.ArtifactSpec{
		Config: layout.Layer{Descriptor: describeBytes(config), Open: opener(config)},
		Layers: []layout.Layer{{Descriptor: describeBytes(blob), Open: opener(blob), Name: "model/w"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := layout.Push(t.Context(), dial(t, reg, "org/m", opts), a, layout.PushOptions{})
	if err != nil || got.BytesUploaded != 4<<20+2 || got.BytesResumed != 4<<20 {
		t.Errorf("got %+v, %v", got, err)
	}
	if b, ok := reg.Blob("org/m", describeBytes(blob).Digest); !ok || !bytes.Equal(b, blob) {
		t.Error("the registry has other bytes than were pushed")
	}
}

// TestExplain: what a registry is known for is said of failures that look like it.
func TestExplain(t *testing.T) {
	ghcr, unknown := behaviourOf("ghcr.io"), behaviour{}
	for name, tt := range map[string]struct {
		b    behaviour
		f    fault
		size int64
		hint string
	}{
		"after the time":  {b: ghcr, f: fault{took: ghcr.upload}, hint: "ends an upload after 10m0s"},
		"5xx at its end":  {b: ghcr, f: fault{took: ghcr.upload, status: 502}, hint: "ends an upload after 10m0s"},
		"long before":     {b: ghcr, f: fault{took: ghcr.upload / 2}},
		"the source":      {b: ghcr, f: fault{took: ghcr.upload, source: true}},
		"another no":      {b: ghcr, f: fault{took: ghcr.upload, status: 403}},
		"Harbor, perhaps": {b: unknown, f: fault{status: 502}, size: 33 << 30, hint: "Harbor before 2.9.2"},
		"no Harbor":       {b: ghcr, f: fault{status: 502}, size: 33 << 30},
		"a smaller layer": {b: unknown, f: fault{status: 502}, size: 32 << 30},
	} {
		tt.f.err = errors.New("broken")
		err := (&endpoint{behaviour: tt.b}).explain(&tt.f, tt.size)
		if got := fmt.Sprint(hint.Of(err)); !strings.Contains(got, tt.hint) || (tt.hint == "") != (len(hint.Of(err)) == 0) {
			t.Errorf("%s: got the hint %q, want %q", name, got, tt.hint)
		}
	}
}
