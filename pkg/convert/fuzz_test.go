package convert

import (
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FuzzOpen gives Open any image manifest, over the blobs of artifacts of ours and
// of others. Whatever it opens keeps a source's promises.
func FuzzOpen(f *testing.F) {
	s := newShelf()
	for _, opts := range []Options{{}, {BundleBelow: 100, Compress: CompressZstd}, {MediaTypes: FamilyDraft}} {
		own, desc, _ := pushed(f, kinds(), opts)
		for dgst, b := range own.blobs {
			s.blobs[dgst] = b
		}
		f.Add(own.blobs[desc.Digest])
	}
	for _, opts := range []Options{{Readme: true, Compat: CompatImageConfig}, {Image: true, BundleBelow: 100, Compress: CompressGzip}} {
		own := newShelf()
		forms, err := Build(f.Context(), kinds(), opts)
		if err != nil {
			f.Fatal(err)
		}
		art := forms.Artifact
		if forms.Image != nil {
			art = forms.Image
		}
		desc := own.put(f, art)
		for dgst, b := range own.blobs {
			s.blobs[dgst] = b
		}
		f.Add(own.blobs[desc.Digest])
	}
	other, desc := modctlModel().put(f)
	for dgst, b := range other.blobs {
		s.blobs[dgst] = b
	}
	f.Add(other.blobs[desc.Digest])
	f.Fuzz(func(t *testing.T, manifest []byte) {
		mine := &shelf{blobs: map[digest.Digest][]byte{}}
		for dgst, b := range s.blobs {
			mine.blobs[dgst] = b
		}
		desc := mine.keep(ocispec.MediaTypeImageManifest, manifest)
		_ = readAll(t, mine, desc, OpenOptions{Wrap: &carton.Runner{Name: "r", RequiredFrameworkVersion: "*"}})
		if mine.open != 0 {
			t.Errorf("%d bodies are open", mine.open)
		}
	})
}
