package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
)

// TestTableOfAnnotations: what a carton's own table says is annotated, and a
// stranger's file says nothing else: not what a field says, not what is the mapping's.
func TestTableOfAnnotations(t *testing.T) {
	toml := cartontest.Info + "\n[annotations]\n" + `"org.opencontainers.image.base.name" = "huggingface.co/org/base"
"org.opencontainers.image.revision" = ""
"org.opencontainers.image.version" = 3
"org.opencontainers.image.title" = "another"
"org.opencontainers.image.created" = "2020-01-01T00:00:00Z"
"run.carton.model.hash" = "0"
"any.other" = "x"
`
	build := func(toml string) map[string]string {
		forms, err := Build(t.Context(), cartontest.New(map[string][]byte{"carton.toml": []byte(toml), "model/a.bin": []byte("a")}, nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		annotations := manifestOf(t, forms.Artifact).Annotations
		delete(annotations, AnnotationModelHash) // carton.toml is part of it
		return annotations
	}
	want := build(cartontest.Info)
	want[ocispec.AnnotationBaseImageName] = "huggingface.co/org/base"
	if diff := cmp.Diff(want, build(toml)); diff != "" {
		t.Error(diff)
	}
}
