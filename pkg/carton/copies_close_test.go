package carton_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// closing remembers what had the output's name when it was closed first.
type closing struct {
	carton.Source
	name string
	had  []byte
}

func (c *closing) Close() error {
	c.had, _ = os.ReadFile(c.name)
	return c.Source.Close()
}

// Windows replaces no file, and renames no folder, that is open: what members are
// copied from is closed before the output takes its name.
func TestCopiesAreClosedBeforeTheyAreReplaced(t *testing.T) {
	version := func(n string) *cartontest.Source {
		return cartontest.New(map[string][]byte{
			carton.InfoName: []byte(cartontest.Info), "model/same": []byte("same"), "model/other": []byte(n),
		}, nil)
	}
	file, folder := filepath.Join(t.TempDir(), "m.carton"), filepath.Join(t.TempDir(), "m")
	for name, write := range map[string]func(src carton.Source, copies *carton.Copies) error{
		file: func(src carton.Source, copies *carton.Copies) error {
			return carton.Assemble(t.Context(), file, src, carton.AssembleOptions{Replace: true, Copies: copies})
		},
		folder: func(src carton.Source, copies *carton.Copies) error {
			return carton.Extract(t.Context(), folder, src, carton.ExtractOptions{Replace: true, Copies: copies})
		},
	} {
		if err := write(version("old"), nil); err != nil {
			t.Fatal(err)
		}
		looked := name
		if name == folder {
			looked = filepath.Join(folder, "model", "other")
		}
		old, err := os.ReadFile(looked)
		if err != nil {
			t.Fatal(err)
		}
		src, err := carton.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		here, copies := &closing{Source: src, name: looked}, new(carton.Copies)
		if err := copies.AddCarton(t.Context(), name, here); err != nil {
			t.Fatal(err)
		}
		if err := write(version("new"), copies); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(looked); err != nil || !bytes.Equal(here.had, old) || bytes.Equal(now, old) {
			t.Errorf("%s: was closed when it was %d bytes, want the %d of the old version; now %d, %v", filepath.Base(name), len(here.had), len(old), len(now), err)
		}
		if copies.Used() == 0 {
			t.Error("nothing was copied")
		}
	}
}
