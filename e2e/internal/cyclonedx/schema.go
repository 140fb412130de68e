// Package cyclonedx judges bills of materials by CycloneDX's own schema.
package cyclonedx

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// Schema is that of version 1.6, which lies in the module of CycloneDX's Go library.
func Schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	cmd.Dir = filepath.Join(testenv.Root(), "e2e")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for url, name := range map[string]string{
		"http://cyclonedx.org/schema/bom-1.6.schema.json":   "bom-1.6.schema.json",
		"http://cyclonedx.org/schema/spdx.schema.json":      "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json":  "jsf-0.82.schemax.json",
		"http://cyclonedx.org/schema/jsf-0.82.schemax.json": "jsf-0.82.schemax.json",
	} {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(out)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
