package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// What docs/registries.md says is done about registries is what is done: row by row.
func TestTheDocumentHasTheRegistriesOfTheCode(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "registries.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for i := range behaviours {
		if row := rowOf(&behaviours[i]); strings.Count(doc, row) != 1 {
			t.Errorf("docs/registries.md lacks the row\n%s", row)
		}
	}
	rows := 0
	for line := range strings.Lines(doc) {
		if strings.HasPrefix(line, "| ") && strings.Contains(line, " | `") {
			rows++
		}
	}
	if rows != len(behaviours) {
		t.Errorf("docs/registries.md has %d rows with hosts, want the %d of the code", rows, len(behaviours))
	}
}

// rowOf writes a row: name, hosts, layers, requests, whether uploads go on, sources.
func rowOf(b *behaviour) string {
	var hosts, layers, requests []string
	for _, h := range b.hosts {
		if h[0] == '.' {
			h = "*" + h
		}
		hosts = append(hosts, "`"+h+"`")
	}
	if b.layer > 0 {
		layers = append(layers, errtext.Size(b.layer)+" each")
	}
	if b.layers > 0 {
		layers = append(layers, fmt.Sprintf("%d of them", b.layers))
	}
	if b.maxPut > 0 {
		requests = append(requests, "larger than "+errtext.Size(b.maxPut)+" in chunks")
	}
	switch {
	case b.maxChunk == noChunks:
		requests = append(requests, "never in chunks")
	case b.maxChunk > 0:
		requests = append(requests, "chunks of "+errtext.Size(b.maxChunk)+" at most")
	}
	if b.upload > 0 {
		requests = append(requests, fmt.Sprintf("%.0f minutes at most", b.upload.Minutes()))
	}
	goesOn := "goes on"
	if !b.resumes() {
		goesOn = "begins again"
	}
	cells := []string{b.name, strings.Join(hosts, ", "), strings.Join(layers, ", "), strings.Join(requests, ", "), goesOn, strings.Join(b.sources, "; ")}
	return "| " + strings.Join(cells, " | ") + " |"
}
