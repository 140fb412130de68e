package e2e

import (
	"bytes"
	"os"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/carton-oci/carton-oci/e2e/internal/cyclonedx"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The bill of materials of any model is one by CycloneDX's own schema and library, and
// the same wherever the model is.
func TestBillOfMaterials(t *testing.T) {
	u := newUser(t)
	s := testregistry.Start(t, testregistry.Options{})
	m := mixedModel()
	m.write(t, u.path("m.carton"))
	ref := s.Host + "/org/m:1"
	u.must(t, "push", "m.carton", ref)
	doc := u.must(t, "sbom", ref).stdout
	if local := u.must(t, "sbom", "m.carton").stdout; local != doc {
		t.Errorf("of the file: got\n%s\nwant that of the artifact", local)
	}
	if err := cyclonedx.Schema(t).Validate(unmarshalJSON(t, doc)); err != nil {
		t.Errorf("%v\n%s", err, doc)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(strings.NewReader(doc), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if c := bom.Metadata.Component; c.Type != cdx.ComponentTypeMachineLearningModel || (*c.Hashes)[0].Value != m.hash() {
		t.Errorf("got %+v", c)
	}
	if n := len(*bom.Components); n != len(m.files)+len(m.symlinks) {
		t.Errorf("got %d members, want %d", n, len(m.files)+len(m.symlinks))
	}
	if err := os.WriteFile(u.path("m.cdx.json"), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	u.must(t, "attach", ref, "m.cdx.json", "--type", "application/vnd.cyclonedx+json")
	if list := u.must(t, "referrers", ref).stdout; !strings.Contains(list, "application/vnd.cyclonedx+json") {
		t.Errorf("it is not listed:\n%s", list)
	}
}

func unmarshalJSON(t *testing.T, text string) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
