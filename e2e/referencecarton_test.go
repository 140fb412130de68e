package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// referenceCarton is a carton as the format's reference implementation writes it.
type referenceCarton struct {
	file, hash string
	members    int
}

// ours is the one that this project makes.
func ours(t testing.TB) referenceCarton {
	t.Helper()
	name := filepath.Join(t.TempDir(), "reference.carton")
	if err := os.WriteFile(name, modeltest.Carton(t), 0o644); err != nil {
		t.Fatal(err)
	}
	return referenceCarton{name, modeltest.CartonHash, modeltest.CartonMembers}
}

// theirs is the one public carton, which the reference implementation itself wrote.
func theirs(t testing.TB) referenceCarton {
	t.Helper()
	return referenceCarton{
		testenv.Foreign(t, "carton/test.carton"), "f1cae5143a92a44e3a7e1d9c32a0245065dfb6e0f1e91c18b5e44356d081dfb5", 11,
	}
}
