package registry_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/registry"
)

func TestHosts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.json")
	for content, want := range map[string][]string{
		`{"auths":{"https://index.docker.io/v1/":{},"ghcr.io/org":{"auth":"x"},"GHCR.IO":{}},"credHelpers":{"r.example:5000":"h"}}`: {"docker.io", "ghcr.io", "r.example:5000"},
		`{`:  nil,
		`{}`: nil,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := registry.DockerCredentials(name).Hosts(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
	if got := registry.DockerCredentials(name + ".none").Hosts(); got != nil {
		t.Errorf("got %q, want none of a file that is not there", got)
	}
}
