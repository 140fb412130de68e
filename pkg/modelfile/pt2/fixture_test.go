package pt2_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// TestFlatArchive: an AOTInductor archive of early 2025, made by torch.
func TestFlatArchive(t *testing.T) {
	f, err := os.Open(testenv.Foreign(t, "pt2/ep1.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	a, err := pt2.Open(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	want := &pt2.Archive{Models: []pt2.Model{{
		Name:        "model",
		AOTInductor: []pt2.Package{{Folder: "model", Device: "cpu", Metadata: map[string]string{"AOTI_DEVICE_KEY": "cpu"}}},
	}}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}
