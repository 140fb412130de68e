package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// The tables of docs/mapping.md are those of the code, row by row.
func TestTheDocumentHasTheTablesOfTheCode(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "mapping.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for name, table := range map[string]string{
		"member → category":    folderTable(),
		"file name → category": nameTable(),
		"carton.toml":          infoTable(),
		"media types":          typeTable(),
		"formats":              formatTable(),
		"architectures":        architectureTable(),
		"types of an image":    imageTable(),
	} {
		if !strings.Contains(doc, "\n\n"+table+"\n") {
			t.Errorf("%s: docs/mapping.md does not hold this table:\n%s", name, table)
		}
	}
	for _, number := range []string{
		fmt.Sprintf("**mapping %s**", Mapping),
		fmt.Sprintf("at most %d of them stand alone", maxRawOthers),
		fmt.Sprintf("more than %d layers", maxLayers),
		fmt.Sprintf("pass %d MiB", bundleBytes>>20),
		fmt.Sprintf("its first tar then has the symlink %#q to %#q", modelsLink.Path, modelsLink.Target),
		fmt.Sprintf("more than %d MiB together", maxMembersBytes>>20),
		fmt.Sprintf("of at most %d characters", carton.ShortDescriptionChars),
		fmt.Sprintf("the number is %d instead of %d", maxImageLayers, maxLayers),
		fmt.Sprintf("%d MiB. They carry %#q", maxExtraBytes>>20, AnnotationExtra),
		"0, 4 KiB, 64 KiB, 1 MiB, 16 MiB, ∞",
		strings.Replace(strings.TrimPrefix(compressor, "github.com/"), " ", "` ", 1),
	} {
		if !strings.Contains(strings.Join(strings.Fields(doc), " "), number) {
			t.Errorf("docs/mapping.md does not say %q", number)
		}
	}
}

func folderTable() string {
	rows := []string{"| member | category |", "|---|---|"}
	for _, r := range folderRules {
		member, cat := "`"+r.prefix+"`", string(r.category)
		switch {
		case r.prefix == "":
			member = "anything else"
		case strings.HasSuffix(r.prefix, "/"):
			member = "`" + r.prefix + "…`"
		}
		if cat == "" {
			cat = "by file name"
		}
		rows = append(rows, "| "+member+" | "+cat+" |")
	}
	return strings.Join(rows, "\n")
}

func nameTable() string {
	rows := []string{"| category | file names |", "|---|---|"}
	for _, r := range filekind.Rules {
		var names []string
		for _, n := range r.Names {
			names = append(names, "`"+n+"`")
		}
		for _, p := range r.Prefixes {
			names = append(names, "`"+p+"*`")
		}
		for _, i := range r.Infixes {
			names = append(names, "`*"+i+"*`")
		}
		for _, s := range r.Suffixes {
			names = append(names, "`*"+s+"`")
		}
		rows = append(rows, "| "+string(r.Category)+" | "+strings.Join(names, " ")+" |")
	}
	return strings.Join(append(rows,
		fmt.Sprintf("| weight | anything else that is at least %d MiB large |", filekind.LargeBytes>>20),
		"| weight.config | anything else |"), "\n")
}

func infoTable() string {
	rows := []string{"| carton.toml | annotation | config `descriptor` |", "|---|---|---|"}
	for _, r := range infoRules {
		config := r.config + " "
		if r.config == "" {
			config = ""
		}
		rows = append(rows, "| `"+r.field+"` | `"+r.annotation+"` | "+config+"|")
	}
	return strings.Join(rows, "\n")
}

func typeTable() string {
	order := []Family{FamilyCNAI, FamilyCNCF, FamilyDraft}
	row := func(name string, value func(mediaTypes) string) string {
		cells := []string{name}
		for _, f := range order {
			v := value(families[f])
			if v != "none" {
				v = "`" + v + "`"
			}
			cells = append(cells, v)
		}
		return "| " + strings.Join(cells, " | ") + " |"
	}
	return strings.Join([]string{
		"| | cnai | cncf | cnai-draft |", "|---|---|---|---|",
		row("artifactType", func(m mediaTypes) string { return m.artifact }),
		row("config", func(m mediaTypes) string { return m.config }),
		row("raw weight", func(m mediaTypes) string { return m.of(categoryWeight, formatRaw) }),
		row("raw, other", func(m mediaTypes) string {
			if !m.canBeRaw(categoryDoc) {
				return "none"
			}
			return m.of("CATEGORY", formatRaw)
		}),
		row("tar", func(m mediaTypes) string { return m.of("CATEGORY", formatTar) }),
		row("file metadata key", func(m mediaTypes) string { return m.metadata }),
	}, "\n")
}

func formatTable() string {
	rows := []string{"| format | file names |", "|---|---|"}
	for _, f := range filekind.Formats {
		rows = append(rows, "| "+f.Name+" | `*"+strings.Join(f.Suffixes, "` `*")+"` |")
	}
	return strings.Join(rows, "\n")
}

func architectureTable() string {
	rows := []string{"| triple | architecture | variant |", "|---|---|---|"}
	for _, a := range architectures {
		variant := a.variant + " "
		if a.variant == "" {
			variant = ""
		}
		rows = append(rows, "| `"+a.triple+"` | "+a.architecture+" | "+variant+"|")
	}
	return strings.Join(rows, "\n")
}

func imageTable() string {
	return strings.Join([]string{
		"| tar | media type |", "|---|---|",
		"| as it is | `" + imageTypes[formatTar] + "` |",
		"| gzip | `" + imageTypes[formatTarGzip] + "` |",
		"| zstd | `" + imageTypes[formatTarZstd] + "` |",
	}, "\n")
}

// The toml of the document is what the code writes for a config that has it all.
func TestTheDocumentHasTheWrapper(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "mapping.md"))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, long := range []bool{false, true} {
		d := Descriptor{Title: "t", Description: "d", Licenses: []string{"l"}, SourceURL: "s", DocURL: "h"}
		if long {
			d.Description = strings.Repeat("d", carton.ShortDescriptionChars+1)
		}
		toml, err := wrapInfo(carton.Runner{Name: "python", RequiredFrameworkVersion: "=3.11"}, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := carton.ParseInfo(toml); err != nil {
			t.Errorf("the carton.toml of a wrapped model is refused: %v", err)
		}
		for line := range strings.Lines(string(toml)) {
			key, _, _ := strings.Cut(strings.TrimSpace(line), " = ")
			if len(keys) == 0 || key != "" {
				keys = append(keys, key)
			}
		}
	}
	_, block, _ := strings.Cut(string(b), "```toml\n")
	block, _, _ = strings.Cut(block, "```")
	for _, key := range keys {
		if key != "" && !strings.Contains("\n"+block, "\n"+key) {
			t.Errorf("docs/mapping.md does not show %s", key)
		}
	}
	if !strings.HasSuffix(block, "\n[runner]\nrunner_name = \"python\"\nrequired_framework_version = \"=3.11\"\nrunner_compat_version = 1\n") {
		t.Errorf("docs/mapping.md shows another [runner]:\n%s", block)
	}
}
