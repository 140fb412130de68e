package carton_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const testCartonHash = "f1cae5143a92a44e3a7e1d9c32a0245065dfb6e0f1e91c18b5e44356d081dfb5"

// A carton with the reference implementation's habits (all zstd, unsorted, dates
// 1980-00-00), and the one public carton, which that implementation wrote.
func TestOpenReferenceCarton(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		b := modeltest.Carton(t)
		src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		checkReferenceCarton(t, src, modeltest.CartonHash, modeltest.CartonMembers)
	})
	t.Run("theirs", func(t *testing.T) {
		src, err := carton.Open(testenv.Foreign(t, "carton/test.carton"))
		if err != nil {
			t.Fatal(err)
		}
		checkReferenceCarton(t, src, testCartonHash, 11)
	})
}

func checkReferenceCarton(t *testing.T, src carton.Source, hash string, count int) {
	t.Helper()
	defer src.Close()
	if got := src.Manifest().ModelHash(); got != hash {
		t.Errorf("model hash: got %s, want %s", got, hash)
	}
	members, err := src.Members(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(members) != count {
		t.Errorf("got %d members, want %d", len(members), count)
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
