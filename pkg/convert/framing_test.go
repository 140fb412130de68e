package convert

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// A large member of an uncompressed tar layer is read by ranges. What lies around
// it is checked all the same: another program that unpacks the layer must see the
// same files.
func TestFramingOfMembersReadByRanges(t *testing.T) {
	big := make([]byte, 5<<20+100)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(big)
	src := cartontest.New(map[string][]byte{"model/big.bin": big}, nil)
	for name, c := range map[string]struct {
		change func(tar []byte)
		kind   error
	}{
		"as it was":         {func([]byte) {}, nil},
		"another mode":      {func(tar []byte) { copy(tar[max(0, bytes.Index(tar, []byte("0000644"))):], "0000755") }, layout.ErrFormat},
		"other padding":     {func(tar []byte) { tar[len(tar)-1025] = 1 }, layout.ErrFormat},
		"data at the end":   {func(tar []byte) { tar[len(tar)-1] = 1 }, layout.ErrFormat},
		"another content":   {func(tar []byte) { tar[3<<20] ^= 1 }, carton.ErrChecksum},
		"data in a header":  {func(tar []byte) { tar[bytes.Index(tar, []byte("big.bin"))] = 'p' }, layout.ErrFormat},
		"all of its middle": {func(tar []byte) { clear(tar[1<<20 : 2<<20]) }, carton.ErrChecksum},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, a := pushed(t, src, Options{Layers: FormTar})
			m, err := layout.ParseManifest(a.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			i := len(m.Layers) - 1
			tar := bytes.Clone(s.blobs[m.Layers[i].Digest])
			if len(tar) < len(big) {
				t.Fatal("the last layer is not the large member's")
			}
			c.change(tar)
			m.Layers[i].Digest = s.keep("", tar).Digest
			desc := s.keep(ocispec.MediaTypeImageManifest, marshal(m))
			artifact, err := Open(t.Context(), s, desc, OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer artifact.Close()
			members, err := artifact.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				if m.Path == "model/big.bin" && (!m.Ranged || m.Place != carton.PlaceBundled) {
					t.Errorf("the test tests nothing: %+v", m)
				}
			}
			dir := t.TempDir()
			err = carton.Assemble(t.Context(), filepath.Join(dir, "m"), artifact, carton.AssembleOptions{})
			if !errors.Is(err, c.kind) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
			if entries, _ := os.ReadDir(dir); (len(entries) == 0) != (c.kind != nil) {
				t.Errorf("%d files are there", len(entries))
			}
			artifact.Close() // what was fetched ahead may not have come yet
			if s.open != 0 {
				t.Errorf("%d bodies are open", s.open)
			}
		})
	}
}
