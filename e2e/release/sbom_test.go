package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/e2e/internal/cyclonedx"
)

func hexOf(sum []byte) []byte { return hex.AppendEncode(nil, sum) }

// checkSBOM holds an SBOM against CycloneDX's own schema, and against what the go
// command says of the program.
func (r *release) checkSBOM(t *testing.T, p platform, binary string) {
	t.Helper()
	raw, err := os.ReadFile(r.file(p.os + "_" + p.arch + ".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var anything any
	var bom struct {
		Metadata struct {
			Component struct {
				Version string
				Hashes  []struct{ Content string }
			}
		}
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(raw, &anything); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &bom); err != nil {
		t.Fatal(err)
	}
	if err := cyclonedx.Schema(t).Validate(anything); err != nil {
		t.Errorf("CycloneDX's schema refuses the SBOM: %v", err)
	}
	sum, err := sha256Of(binary)
	if err != nil {
		t.Fatal(err)
	}
	main := bom.Metadata.Component
	if len(main.Hashes) != 1 || main.Hashes[0].Content != string(hexOf(sum)) || main.Version != r.version {
		t.Errorf("the SBOM is about %+v, want %s with the sha256 %x", main, r.version, sum)
	}
	listing, err := output(exec.Command("go", "version", "-m", binary))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for line := range strings.SplitSeq(listing, "\n") {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" {
			want = append(want, f[1]+" "+f[2])
		}
	}
	for _, c := range bom.Components {
		if c.Name != "std" {
			got = append(got, c.Name+" "+c.Version)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(got)+1 != len(bom.Components) {
		t.Errorf("modules: (-go version -m +SBOM)\n%s", diff)
	}
}
