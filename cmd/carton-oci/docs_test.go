package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

func readPage(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// texts returns what the program's string literals hold, of all packages.
func texts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, root := range []string{"cmd/carton-oci", "pkg", "internal"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						all.WriteString(text + "\n")
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// Every error that docs/troubleshooting.md explains is one that the program says.
func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	said := texts(t)
	headings := regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(readPage(t, "docs/troubleshooting.md"), -1)
	if len(headings) < 20 {
		t.Errorf("got %d errors, want 20 and more", len(headings))
	}
	for _, heading := range headings {
		for part := range strings.SplitSeq(heading[1], "…") {
			if part = strings.Trim(part, " ,:"); !strings.Contains(said, part) {
				t.Errorf("%s: nothing says %q", heading[1], part)
			}
		}
	}
}

// Every command line of ours that a page shows is one that the program reads: the
// commands and flags are there.
func TestPagesShowCommandsThatExist(t *testing.T) {
	app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
	lines := 0
	pages, err := filepath.Glob(filepath.Join(testenv.Root(), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		page = strings.TrimPrefix(filepath.ToSlash(page), filepath.ToSlash(testenv.Root())+"/")
		for _, line := range commandsIn(readPage(t, page)) {
			line, _, _ = strings.Cut(line, " #")
			line, _, _ = strings.Cut(line, " | ")
			words := strings.Fields(strings.NewReplacer("'", "", `"`, "", "$(", "", ")", "").Replace(line))
			lines++
			if _, err := reorder(app, words); err != nil {
				t.Errorf("%s: carton-oci %s: %v", page, line, err)
			}
		}
	}
	if lines < 60 {
		t.Errorf("got %d command lines, want 60 and more", lines)
	}
}

// commandsIn returns the command lines of ours in a page: those of its blocks, and
// those that are code in its text.
func commandsIn(page string) []string {
	block, inText := regexp.MustCompile(`^\$? ?carton-oci (.+)$`), regexp.MustCompile("`carton-oci ([^`]+)`")
	var out []string
	fenced := false
	for line := range strings.SplitSeq(page, "\n") {
		from := inText
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
			continue
		case fenced:
			from = block
		}
		for _, found := range from.FindAllStringSubmatch(line, -1) {
			out = append(out, found[1])
		}
	}
	return out
}
