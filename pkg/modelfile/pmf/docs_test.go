package pmf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
)

// The table of docs/packing.md is that of the code.
func TestTheDocumentHasTheRules(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "packing.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for rule, text := range pmf.Rules {
		if row := "| `" + string(rule) + "` | " + text + " |\n"; !strings.Contains(doc, row) {
			t.Errorf("docs/packing.md does not hold this row:\n%s", row)
		}
	}
	_, table, _ := strings.Cut(doc, "| rule | what it wants |\n|---|---|\n")
	if got, want := strings.Count(table, "\n| `")+1, len(pmf.Rules); got != want {
		t.Errorf("docs/packing.md has %d rules, want %d", got, want)
	}
}
