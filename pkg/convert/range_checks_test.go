package convert

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"oras.land/oras-go/v2/content/memory"
)

// wrongCRC is a carton whose zip lies about the CRC of a member, which has the hash
// that MANIFEST lists all the same.
type wrongCRC struct{ carton.Source }

func (s wrongCRC) Members(ctx context.Context) ([]carton.Member, error) {
	members, err := s.Source.Members(ctx)
	for i := range members {
		members[i].Place, members[i].Ranged = carton.PlaceStored, true
	}
	return members, err
}

func (wrongCRC) CRC(path string) (uint32, bool) { return 0xbad, path == "model/w.bin" }

// A member that is read by ranges, or as one range, is held against all that opening
// it would hold it against.
func TestAWrongCRCIsNotPushed(t *testing.T) {
	src := wrongCRC{cartontest.New(map[string][]byte{"model/w.bin": make([]byte, 5<<20)}, nil)}
	a, err := artifactOf(t.Context(), src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := layout.CreateDir(filepath.Join(t.TempDir(), "layout"))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]layout.Store{"layout": dir, "another store": layout.FromTarget(memory.New())} {
		if _, err := layout.Push(t.Context(), s, a, layout.PushOptions{}); !errors.Is(err, carton.ErrChecksum) {
			t.Errorf("%s: got %v, want %v", name, err, carton.ErrChecksum)
		}
	}
}
