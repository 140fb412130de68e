package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The promise: the config of an artifact is ModelPack's, to the letter of its
// schema, whatever the options.

func TestConfigFollowsItsSchema(t *testing.T) {
	u := newUser(t)
	file := testenv.Fixture(t, fixture)
	schema, err := jsonschema.NewCompiler().Compile(testenv.Fixture(t, "modelpack/config-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := testregistry.Start(t, testregistry.Options{})
	pythonModel().write(t, u.path("many.carton"))
	weighty().write(t, u.path("weighty.carton"))
	options := map[string][]string{
		"default":    nil,
		"tar":        {"--layers", "tar"},
		"cncf":       {"--media-types", "cncf"},
		"cnai-draft": {"--media-types", "cnai-draft"},
		"zstd":       {"--compress", "zstd", "--bundle-below", "1MiB"},
		"gzip":       {"--compress", "gzip", "--bundle-below", "1MiB"},
	}
	for name, flags := range options {
		for _, source := range []string{file, "many.carton", "weighty.carton"} {
			t.Run(name+" "+source[strings.LastIndexByte(source, '/')+1:], func(t *testing.T) {
				p := u.push(t, append([]string{source, s.Host + "/org/" + name + ":1"}, flags...)...)
				var manifest struct {
					Config struct{ MediaType, Digest string }
					Layers []struct{ MediaType string }
				}
				if err := json.Unmarshal(s.Blob(t, p.Digest), &manifest); err != nil {
					t.Fatal(err)
				}
				config := string(s.Blob(t, manifest.Config.Digest))
				value, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
				if err != nil {
					t.Fatal(err)
				}
				if err := schema.Validate(value); err != nil {
					t.Errorf("%v in\n%s", err, config)
				}
				// The schema does not know how many layers there are.
				diffIDs, ok := value.(map[string]any)["modelfs"].(map[string]any)["diffIds"].([]any)
				if !ok || len(diffIDs) != len(manifest.Layers) {
					t.Errorf("got %d diffIds, want one for each of %d layers", len(diffIDs), len(manifest.Layers))
				}
				u.must(t, "verify", s.Host+"/org/"+name+":1")
			})
		}
	}
}
