package dtype_test

import (
	"testing"

	"github.com/carton-oci/carton-oci/internal/dtype"
)

// TestNamesAreUnique: whatever a type is looked for by, there is one.
func TestNamesAreUnique(t *testing.T) {
	seen := map[any]string{}
	unique := func(what string, key any, name string) {
		t.Helper()
		if other, twice := seen[[2]any{what, key}]; twice {
			t.Errorf("%s %v is that of %s and %s", what, key, other, name)
		}
		seen[[2]any{what, key}] = name
	}
	for i, x := range dtype.Types {
		unique("name", x.Name, x.Name)
		unique("ModelPack's name", x.ModelPack, x.Name)
		if x.Carton != "" {
			unique("carton's name", x.Carton, x.Name)
		}
		if x.Numpy != "" {
			unique("numpy's code", x.Numpy, x.Name)
		}
		if x.Torch != 0 {
			unique("torch's number", x.Torch, x.Name)
		}
		if got := dtype.Named(x.Name); got == nil || *got != x || dtype.Rank(x.Name) != i {
			t.Errorf("%s: got %v of rank %d, want %v of %d", x.Name, got, dtype.Rank(x.Name), x, i)
		}
		if want := x.Name != "C32" && x.Name != "C128"; x.Safetensors() != want {
			t.Errorf("safetensors has %s: got %v, want %v", x.Name, x.Safetensors(), want)
		}
		if want := x.Name == "C32" || x.Name == "C64" || x.Name == "C128"; x.Complex() != want {
			t.Errorf("%s is complex: got %v, want %v", x.Name, x.Complex(), want)
		}
	}
	if dtype.Named("float32") != nil || dtype.Rank("float32") != -1 {
		t.Error("float32 is the name of a type")
	}
}
