package pack_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// Loose files are seen as pack would lay them out, and no content is read.
func TestOpenLoose(t *testing.T) {
	weights := string(modeltest.Safetensors(t, nil, modeltest.Tensor{Name: "w", DType: "F32", Shape: []int64{2}, Data: make([]byte, 8)}))
	dir := tree(t, map[string]string{
		"model.safetensors": weights, "again.safetensors": weights, "l.safetensors": "-> model.safetensors", ".git/HEAD": "x",
		"README.md": "---\nlicense: mit\nname: Tiny\n---\n", "broken.safetensors": "broken",
	})
	big := filepath.Join(dir, "big.onnx")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 1<<40); err != nil { // nobody reads it
		t.Fatal(err)
	}
	c, err := pack.OpenLoose(t.Context(), []string{dir}, pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantListing(t, c, "model/README.md", "model/again.safetensors", "model/big.onnx", "model/broken.safetensors",
		"model/l.safetensors -> model.safetensors", "model/model.safetensors")
	if c.Info.License != "MIT" || c.Info.ModelName != "Tiny" || read(t, c, "model/l.safetensors") != weights {
		t.Errorf("got %+v", c.Info)
	}
	tensors, notes, err := inspect.Tensors(t.Context(), c, inspect.Options{})
	if err != nil || len(tensors) != 2 || len(notes) != 1 {
		t.Errorf("got %d tensors, %v, %v", len(tensors), notes, err)
	}
	const toml = "model_name = 'own'\nspec_version = 1\nrunner = { runner_name = 'x', required_framework_version = '*', runner_compat_version = 1 }\n"
	laid, err := pack.OpenLoose(t.Context(), []string{tree(t, map[string]string{"carton.toml": toml, "model/a": "x"})}, pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer laid.Close()
	wantListing(t, laid, "carton.toml", "model/a")
	if laid.Info.ModelName != "own" || laid.Info.Runner.Name != "x" {
		t.Errorf("got %+v", laid.Info)
	}
}

func TestIsLoose(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"})
	_, name := assemble(t, open(t, noop, dir))
	zipped, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want bool
	}{
		{dir, true},
		{filepath.Join(dir, "a"), true},
		{filepath.Join(dir, "none"), false},
		{name, false},
		{file(t, "m.carton", []byte("broken")), false},
		{file(t, "m.zip", zipped), false},
		{file(t, "m.pt", zipped), false},
		{file(t, "cut.zip", zipped[:100]), false},
		{file(t, "cut.pt2", zipped[:100]), true},
		{file(t, "w.safetensors", nil), true},
		{tree(t, map[string]string{"MANIFEST": "of somebody's own"}), true},
		{tree(t, map[string]string{"MANIFEST": "-> /dev/null", carton.InfoName: "", "model/a": "x"}), false},
		{tree(t, map[string]string{"MANIFEST": "broken", carton.InfoName: ""}), false},
	} {
		if got := pack.IsLoose(c.name); got != c.want {
			t.Errorf("%s: got %v, want %v", filepath.Base(c.name), got, c.want)
		}
	}
}

// TestHashesOfLooseFiles: where they are asked for, they are those of the content, and
// a file that changes is noticed.
func TestHashesOfLooseFiles(t *testing.T) {
	dir := tree(t, map[string]string{"a.bin": "same", "b.bin": "same", "c.txt": "other"})
	c, err := pack.OpenLoose(t.Context(), []string{dir}, pack.Options{Hashes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := open(t, noop, dir).Manifest()
	for _, e := range c.Manifest().Entries() {
		if w, ok := want.Lookup(e.Path); !ok || w.Hash != e.Hash {
			t.Errorf("got %v, want %v", e, w)
		}
	}
	write(t, dir, map[string]string{"a.bin": "diff"})
	r, err := c.Open(t.Context(), "model/a.bin")
	if err == nil {
		_, err = io.ReadAll(r)
		r.Close()
	}
	if !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum", err)
	}
}
