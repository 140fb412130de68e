package carton_test

import (
	"context"
	"io"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const testCartonHash = "f1cae5143a92a44e3a7e1d9c32a0245065dfb6e0f1e91c18b5e44356d081dfb5"

// The one public carton, written by the reference implementation: all zstd,
// unsorted, dates 1980-00-00.
func TestOpenReferenceCarton(t *testing.T) {
	src, err := carton.Open(testenv.Foreign(t, "carton/test.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got := src.Manifest().ModelHash(); got != testCartonHash {
		t.Errorf("model hash: got %s, want %s", got, testCartonHash)
	}
	members, err := src.Members(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(members) != 11 {
		t.Errorf("got %d members, want 11", len(members))
	}
	for _, m := range members {
		if m.Place != carton.PlaceCompressed {
			t.Errorf("%s: got place %s, want %s", m.Path, m.Place, carton.PlaceCompressed)
		}
		r, err := src.Open(context.Background(), m.Path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r) // nil says that the hash was right
		if err != nil || n != m.Size {
			t.Errorf("%s: got %d bytes, %v; want %d", m.Path, n, err, m.Size)
		}
		r.Close()
	}
}
