package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// namesOfHints returns the constants of pkg/hint/names.go.
func namesOfHints(t *testing.T) map[string]hint.Name {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../pkg/hint/names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]hint.Name{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names[v.Names[0].Name] = hint.Name(text)
		}
		return true
	})
	return names
}

// Every name that a hint may have is a field or function of the library, and a flag
// or command here.
func TestNamesInHints(t *testing.T) {
	options := map[string]any{
		"client.Options": client.Options{}, "client.OpenOptions": client.OpenOptions{}, "client.PushOptions": client.PushOptions{},
		"client.PullOptions": client.PullOptions{}, "client.SignOptions": client.SignOptions{}, "client.DeleteOptions": client.DeleteOptions{}, "client.CopyOptions": client.CopyOptions{},
		"convert.Options": convert.Options{}, "inspect.Options": inspect.Options{},
		"pack.Options": pack.Options{}, "carton.Runner": carton.Runner{}, "registry.Options": registry.Options{},
	}
	app := newApp(&session{printer: &printer{}})
	flags := map[string]bool{}
	for _, c := range app.Commands {
		flags["carton-oci "+c.Name] = true
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				flags[strings.Repeat("-", min(len(name), 2))+name] = true
			}
		}
	}
	names := namesOfHints(t)
	if len(names) != len(commandNames) || len(names) < 30 {
		t.Errorf("got %d names of hints and %d of the command", len(names), len(commandNames))
	}
	for constant, name := range names {
		if known := flags[commandNames[name]]; !known && name != hint.Plain {
			t.Errorf("%s: got %q, want a flag or a command", constant, commandNames[name])
		}
		i := strings.LastIndexByte(string(name), '.')
		if o, ok := options[string(name[:i])]; ok {
			if _, ok := reflect.TypeOf(o).FieldByName(string(name[i+1:])); !ok {
				t.Errorf("%s: there is no %s", constant, name)
			}
		} else if strings.Contains(string(name), "Options") {
			t.Errorf("%s: %s is in options that nobody knows", constant, name)
		}
	}
}

// What the library says names no flag of the command, and no command: an embedder
// has neither. Flags of other programs are named with them.
func TestTheLibraryNamesNoFlag(t *testing.T) {
	var commands []string
	for _, c := range newApp(&session{printer: &printer{}}).Commands {
		commands = append(commands, c.Name)
	}
	ours := regexp.MustCompile(`\bcarton-oci (` + strings.Join(commands, "|") + `)\b|(^|[ (])--[a-z]`)
	others := regexp.MustCompile(`\b(oras|skopeo|crane|cosign|hf) [a-z-]+.* --|^"--[a-z-]+(=[a-z]*)?"$`) // the last: what git is given
	isOfTests := regexp.MustCompile(`internal/(gotest|testenv)/`)
	for _, root := range []string{"../../pkg", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || isOfTests.MatchString(filepath.ToSlash(path)) {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && ours.MatchString(lit.Value[1:]) && !others.MatchString(lit.Value) {
					t.Errorf("%s: %s", files.Position(lit.Pos()), lit.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
