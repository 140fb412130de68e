package convert

import (
	"encoding/json"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/carton/sourcetest"
)

// withoutLists stores an image manifest whose layers do not say what is in tars.
func withoutLists(t *testing.T, s *shelf, desc ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	var m ocispec.Manifest
	if err := json.Unmarshal(s.blobs[desc.Digest], &m); err != nil {
		t.Fatal(err)
	}
	for i := range m.Layers {
		delete(m.Layers[i].Annotations, AnnotationMembers)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return s.keep(desc.MediaType, b)
}

// An artifact is a carton.Source with all that this promises, in every mode, whether
// its annotations say what lies in tars or not, and as a model that is no carton.
func TestArtifactsKeepThePromisesOfASource(t *testing.T) {
	for _, mode := range []string{
		"cnai", "cncf layers=raw compress=gzip bundle-below=100", "cnai layers=tar compress=none bundle-below=100", string(FamilyDraft) + " layers=tar compress=zstd bundle-below=100",
	} {
		for _, listed := range []bool{true, false} {
			t.Run(mode+map[bool]string{true: "", false: ", unlisted"}[listed], func(t *testing.T) {
				opts, known := modes()[mode]
				if !known {
					t.Fatal("no such mode")
				}
				s, desc, _ := pushed(t, kinds(), opts)
				if !listed {
					desc = withoutLists(t, s, desc)
				}
				sourcetest.TestSource(t, func() carton.Source { return opened(t, s, desc, OpenOptions{}) }, sourcetest.Options{})
			})
		}
	}
	t.Run("wrapped", func(t *testing.T) {
		open := func() carton.Source {
			src, err := modctlModel().open(t, OpenOptions{Wrap: &carton.Runner{Name: "python", RequiredFrameworkVersion: "=3.11"}})
			if err != nil {
				t.Fatal(err)
			}
			return src
		}
		sourcetest.TestSource(t, open, sourcetest.Options{})
	})
	t.Run("broken", func(t *testing.T) {
		s, desc, a := pushed(t, kinds(), Options{})
		open := func() carton.Source { return opened(t, s, desc, OpenOptions{}) }
		broken := func() (carton.Source, string) {
			src := open()
			for _, l := range a.Layers {
				if l.Name == "model/weights-1.bin" {
					s.blobs[l.Digest] = append([]byte("x"), s.blobs[l.Digest][1:]...)
				}
			}
			return src, "model/weights-1.bin"
		}
		sourcetest.TestSource(t, open, sourcetest.Options{Broken: broken})
	})
}
