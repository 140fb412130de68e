package carton_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/google/go-cmp/cmp"
)

func linksFor(contents ...string) *carton.Links {
	l := &carton.Links{URLs: map[string][]string{}}
	for _, c := range contents {
		l.URLs[cartontest.Bytes(c).Hash()] = []string{"https://example.com/" + c}
	}
	return l
}

func TestThinCartonHoldsAllButWhatIsLinked(t *testing.T) {
	files := map[string][]byte{
		"model/w1": []byte("weight-1"), "model/w2": []byte("weight-2"), "model/small": []byte("small"),
		"tensor_data/w1.bin": []byte("weight-1"), "misc/pic": []byte("pic"),
	}
	symlinks := map[string]string{"model/link": "w1"}
	links := linksFor("weight-1", "weight-2", cartontest.Info, "not in the carton")
	for name, src := range map[string]carton.Source{
		"of a whole one": cartontest.New(files, symlinks),
		// misc/pic is linked there, and stays so; of the rest nothing is read.
		"of a thin one": cartontest.New(files, symlinks,
			cartontest.WithLinks(linksFor("weight-2")), cartontest.WithPlace(carton.PlaceLinked, "misc/pic", "carton.toml")),
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{"carton.toml", "misc/pic", "model/link -> w1", "model/small", "tensor_data/w1.bin"}
			links := &carton.Links{URLs: links.URLs}
			if name == "of a thin one" {
				links = linksFor("weight-1", "weight-2", cartontest.Info, "pic")
				want = slices.Delete(want, 1, 2)
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "thin.carton")
			if err := carton.Assemble(t.Context(), file, src, carton.AssembleOptions{Thin: links}); err != nil {
				t.Fatal(err)
			}
			onlyFile(t, dir, "thin.carton")
			thin, err := carton.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer thin.Close()
			if !bytes.Equal(thin.Manifest().Bytes(), src.Manifest().Bytes()) {
				t.Error("MANIFEST has changed")
			}
			if diff := cmp.Diff(links, thin.Links()); diff != "" {
				t.Errorf("LINKS (-want +got):\n%s", diff)
			}
			members, err := thin.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var inside []string
			for _, m := range members {
				switch {
				case m.Target != "":
					inside = append(inside, m.Path+" -> "+m.Target)
				case m.Place != carton.PlaceLinked:
					inside = append(inside, m.Path)
				}
			}
			if diff := cmp.Diff(want, inside); diff != "" {
				t.Errorf("members inside (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWholeCartonNeedsWhatIsLinked(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/w": []byte("w")}, nil, cartontest.WithLinks(linksFor("w")))
	dir := t.TempDir()
	// Nothing follows links here.
	for verb, err := range map[string]error{
		"Assemble": carton.Assemble(t.Context(), filepath.Join(dir, "m"), src, carton.AssembleOptions{}),
		"Extract":  carton.Extract(t.Context(), filepath.Join(dir, "d"), src, carton.ExtractOptions{}),
	} {
		if !errors.Is(err, carton.ErrLink) {
			t.Errorf("%s: got %v, want ErrLink", verb, err)
		}
	}
	onlyFile(t, dir, "")
}
