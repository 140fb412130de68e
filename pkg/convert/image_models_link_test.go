package convert

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// The promise: whoever mounts the folder models of an image form sees the model,
// and no reader of cartons sees anything that MANIFEST does not list.

// Those whose carton has nothing of that name.
func TestWhichImagesHaveTheFolderModels(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"a model":                    {map[string]string{"model/a.bin": "a"}, true},
		"a folder models":            {map[string]string{"model/a.bin": "a", "models/b.bin": "b"}, false},
		"a file models":              {map[string]string{"model/a.bin": "a", "models": "b"}, false},
		"a name that begins so":      {map[string]string{"model/a.bin": "a", "models.txt": "b", "modelsx/c": "c"}, true},
		"models of another case":     {map[string]string{"model/a.bin": "a", "Models/b": "b"}, true},
		"no files in the model":      {map[string]string{"misc/a.bin": "a"}, false},
		"a folder models further in": {map[string]string{"model/models/a.bin": "a", "misc/models": "b"}, true},
	} {
		files := map[string][]byte{carton.InfoName: []byte(cartontest.Info)}
		for p, text := range c.files {
			files[p] = []byte(text)
		}
		for mode, opts := range imageModes() {
			t.Run(name+" "+mode, func(t *testing.T) {
				src := cartontest.New(files, nil)
				forms := formsOf(t, src, opts)
				_, links := unpackedImage(t, forms.Image)
				if got := links["models"] == "model"; got != c.want || !got && len(links) > 0 {
					t.Errorf("got the symlinks %v, want one of models: %v", links, c.want)
				}
				s := newShelf()
				stored := opened(t, s, s.put(t, forms.Image), OpenOptions{})
				for p := range maps.Keys(files) {
					if got := content(t, stored, p); got != string(files[p]) {
						t.Errorf("%s: got %q", p, got)
					}
				}
				report, err := carton.Verify(t.Context(), stored, carton.VerifyOptions{})
				if err != nil || report.ModelHash != src.Manifest().ModelHash() {
					t.Errorf("got %+v, %v", report, err)
				}
			})
		}
	}
}

// Neither of an image that lists what its layers hold, nor of one that does not.
func TestTheFolderModelsIsNoMember(t *testing.T) {
	for mode, opts := range imageModes() {
		forms := formsOf(t, kinds(), opts)
		s := newShelf()
		s.put(t, forms.Image)
		m := manifestOf(t, forms.Image)
		for i := range m.Layers {
			m.Layers[i].Annotations = nil
		}
		for list, desc := range map[string]ocispec.Descriptor{
			"listed": forms.Image.Descriptor, "not listed": s.keep(ocispec.MediaTypeImageManifest, marshal(m)),
		} {
			src := opened(t, s, desc, OpenOptions{})
			members, err := src.Members(t.Context())
			if err != nil {
				t.Fatalf("%s %s: %v", mode, list, err)
			}
			if slices.ContainsFunc(members, func(m carton.Member) bool { return m.Path == "models" }) {
				t.Errorf("%s %s: models is a member", mode, list)
			}
			if err := readAll(t, s, desc, OpenOptions{}); err != nil {
				t.Errorf("%s %s: %v", mode, list, err)
			}
			for i := range src.layers {
				if err := src.vouch(t.Context(), i, nil, nil); err != nil {
					t.Errorf("%s %s: %v", mode, list, err)
				}
			}
		}
	}
}

// The symlink is where the mapping puts it, or the image is not the mapping's.
func TestAnotherFolderModels(t *testing.T) {
	head := func(t *testing.T, entries ...layout.TarEntry) []byte {
		src := kinds()
		entries = append(entries, layout.TarEntry{Path: carton.ManifestName, Size: src.Manifest().Len()},
			layout.TarEntry{Path: carton.InfoName, Size: int64(len(fullInfo))})
		plan, err := layout.NewTarPlan(entries)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		r, err := plan.Open(t.Context(), 0, func(ctx context.Context, path string, off int64) (io.ReadCloser, error) {
			if path == "models" {
				return noContent(ctx, path, off)
			}
			return openFrom(ctx, src, path, off)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	link := func(path, target string) layout.TarEntry { return layout.TarEntry{Path: path, Target: target} }
	for name, entries := range map[string][]layout.TarEntry{
		"without":            {},
		"to another folder":  {link("models", "misc")},
		"out of the image":   {link("models", "../../etc")},
		"by another name":    {link("modelz", "model")},
		"and a second one":   {link("models", "model"), link("modelz", "model")},
		"below the model":    {link("models", "model"), link("model/models", "..")},
		"as a file":          {{Path: "models"}},
		"in a folder models": {link("models/a", "../model")},
	} {
		for list, keep := range map[string]bool{"listed": true, "not listed": false} {
			t.Run(name+" "+list, func(t *testing.T) {
				forms := formsOf(t, kinds(), Options{Image: true})
				s := newShelf()
				s.put(t, forms.Image)
				m := manifestOf(t, forms.Image)
				made := s.keep(m.Layers[0].MediaType, head(t, entries...))
				made.Annotations = m.Layers[0].Annotations
				m.Layers[0] = made
				for i := range m.Layers {
					if !keep {
						m.Layers[i].Annotations = nil
					}
				}
				err := readAll(t, s, s.keep(ocispec.MediaTypeImageManifest, marshal(m)), OpenOptions{})
				if !errors.Is(err, layout.ErrFormat) && !errors.Is(err, carton.ErrFormat) && !errors.Is(err, carton.ErrInsecurePath) && !errors.Is(err, carton.ErrChecksum) {
					t.Errorf("got %v, want it refused", err)
				}
			})
		}
	}
	t.Run("in another layer", func(t *testing.T) {
		forms := formsOf(t, kinds(), Options{Image: true})
		s := newShelf()
		s.put(t, forms.Image)
		m := manifestOf(t, forms.Image)
		m.Layers[0], m.Layers[1] = m.Layers[1], m.Layers[0]
		if err := readAll(t, s, s.keep(ocispec.MediaTypeImageManifest, marshal(m)), OpenOptions{}); !errors.Is(err, layout.ErrFormat) {
			t.Errorf("got %v, want it refused", err)
		}
	})
	t.Run("in an artifact", func(t *testing.T) {
		s, desc := changed(t, Options{Layers: FormTar}, func(s *shelf, m *ocispec.Manifest) {
			plan, err := layout.NewTarPlan([]layout.TarEntry{modelsLink})
			if err != nil {
				t.Fatal(err)
			}
			r, err := plan.Open(t.Context(), 0, noContent)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if _, err := b.ReadFrom(r); err != nil {
				t.Fatal(err)
			}
			m.Layers = append(m.Layers, s.keep(strings.Replace(m.Layers[2].MediaType, "raw", "tar", 1), b.Bytes()))
		})
		src, err := Open(t.Context(), s, desc, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		members, err := src.Members(t.Context())
		if err != nil || len(src.Unlisted()) != 1 || len(members) != len(src.Manifest().Entries()) {
			t.Errorf("got %d members, %q, %v, want it left out and named, as a layer that MANIFEST does not list", len(members), src.Unlisted(), err)
		}
	})
}
