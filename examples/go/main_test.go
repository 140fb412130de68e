package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

func TestExample(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	dir := t.TempDir()
	source, file := filepath.Join(dir, "m.carton"), filepath.Join(dir, "pulled.carton")
	if err := carton.Assemble(t.Context(), source, cartontest.New(map[string][]byte{"model/a": []byte("a")}, nil), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, source, r.Host+"/m:1", r.Host+"/copy:1", file); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), file+": ") {
		t.Errorf("got %q", out.String())
	}
	want, _ := os.ReadFile(source)
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v, want those of the carton", len(got), err)
	}

	err := run(t.Context(), &out, "nowhere", r.Host+"/m:1", r.Host+"/copy:1", file)
	if len(hint.Of(err)) == 0 {
		t.Errorf("got %v without a hint", err)
	}
}
