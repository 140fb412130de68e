package sbom_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/sbom"
)

func sample(t *testing.T, license string) sbom.Model {
	t.Helper()
	src := cartontest.New(map[string][]byte{"model/a.bin": []byte("a"), "model/<b>&\".txt": []byte("b")}, map[string]string{"model/link": "a.bin"})
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sbom.Model{
		Manifest: src.Manifest(), Members: members,
		Info: &carton.Info{
			ModelName: "sample", ShortDescription: "a model", License: license,
			Repository: "https://example.com/code", Homepage: "not a URL",
			Runner:  carton.Runner{Name: "noop", RequiredFrameworkVersion: "*"},
			Inputs:  []carton.TensorSpec{{Name: "x", DType: "float32"}},
			Outputs: []carton.TensorSpec{{Name: "y", DType: "int64"}},
		},
		Facts: &inspect.Facts{Format: "safetensors", Precision: "float32", Parameters: 42},
	}
}

// The document does not move, and says the same twice.
func TestCycloneDX(t *testing.T) {
	got, err := sbom.CycloneDX(sample(t, "Apache-2.0 OR MIT"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := sbom.CycloneDX(sample(t, "Apache-2.0 OR MIT"))
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("twice: %v, other bytes", err)
	}
	want, err := os.ReadFile("testdata/sample.cdx.json")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s (%v)", got, want, err)
	}
}

// A licence that is no SPDX expression is a name; no licence is none; another model has
// another serial number.
func TestLicensesAndSerials(t *testing.T) {
	serials := map[string]bool{}
	for license, want := range map[string]string{
		"": "", "MIT": `"expression": "MIT"`, "see the file": `"name": "see the file"`, "a AND": `"name": "a AND"`,
	} {
		got, err := sbom.CycloneDX(sample(t, license))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(got), `"licenses"`) != (want != "") || !strings.Contains(string(got), want) {
			t.Errorf("%q: got\n%s", license, got)
		}
		var doc struct{ SerialNumber string }
		if err := json.Unmarshal(got, &doc); err != nil {
			t.Fatal(err)
		}
		serials[doc.SerialNumber] = true
	}
	if len(serials) != 4 {
		t.Errorf("got %d serial numbers", len(serials))
	}
}
