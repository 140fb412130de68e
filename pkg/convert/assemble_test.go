package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"oras.land/oras-go/v2/content/memory"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// From every artifact of a carton comes the same file, bit for bit, and each
// bundle is read once on the way.
func TestEveryArtifactAssemblesTheSameFile(t *testing.T) {
	dir := t.TempDir()
	var want []byte
	for _, mode := range sortedKeys(modes()) {
		s, desc, a := pushed(t, kinds(), modes()[mode])
		src := opened(t, s, desc, OpenOptions{})
		s.reset()
		name := filepath.Join(dir, mode+".carton")
		if err := carton.Assemble(t.Context(), name, src, carton.AssembleOptions{}); err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: another file", mode)
		}
		// MANIFEST is not read again; a bundle of symlinks is read as a list.
		if most := len(a.Layers); len(s.requests) > most {
			t.Errorf("%s: took %d requests for %d layers: %v", mode, len(s.requests), most, s.requests)
		}
	}
}

// A thin carton whose content a store has is pushed there without its content:
// nothing is fetched, and nothing is sent that is there.
func TestAThinCartonIsPushedWithoutItsContent(t *testing.T) {
	store := layout.FromTarget(memory.New())
	full, err := artifactOf(t.Context(), kinds(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Push(t.Context(), store, full, layout.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	thin := zipOf(t, 0, false, linksOf("model/weights-1.bin", "model/weights-2.bin"))
	defer thin.Close()
	// The only fetcher is the store: what it lacks can't be had.
	again, err := artifactOf(t.Context(), links.Resolve(thin, StoreFetcher(store, nil)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest != full.Digest {
		t.Error("another digest")
	}
	result, err := layout.Push(t.Context(), store, again, layout.PushOptions{Tags: []string{"thin"}})
	if err != nil || result.BytesUploaded != 0 {
		t.Errorf("got %+v, %v, want nothing uploaded", result, err)
	}
}
