package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/modelpack/model-spec/schema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The promise: the config of an artifact is ModelPack's, to the letter of its
// schema, whatever the options.

func TestConfigFollowsItsSchema(t *testing.T) {
	checkConfigs(t, func(config string) error {
		return schema.ValidatorMediaTypeModelConfig.Validate(strings.NewReader(config))
	})
}

// The schema of the specification's next version allows nothing that it does not
// name.
func TestConfigFollowsTheNextSchema(t *testing.T) {
	next, err := jsonschema.NewCompiler().Compile(testenv.Foreign(t, "modelpack/config-schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkConfigs(t, func(config string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
		if err != nil {
			return err
		}
		return next.Validate(value)
	})
}

// checkConfigs checks the configs of cartons that were pushed with every option
// that changes them.
func checkConfigs(t *testing.T, check func(config string) error) {
	t.Helper()
	u := newUser(t)
	file := ours(t).file
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
				if err := check(config); err != nil {
					t.Errorf("%v in\n%s", err, config)
				}
				// No schema knows how many layers there are.
				var value struct {
					ModelFS struct{ DiffIDs []string } `json:"modelfs"`
				}
				if err := json.Unmarshal([]byte(config), &value); err != nil || len(value.ModelFS.DiffIDs) != len(manifest.Layers) {
					t.Errorf("got %d diffIds and %v, want one for each of %d layers", len(value.ModelFS.DiffIDs), err, len(manifest.Layers))
				}
				u.must(t, "verify", s.Host+"/org/"+name+":1")
			})
		}
	}
}
