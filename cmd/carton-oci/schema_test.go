package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// exitSchema is the exit code of a command whose JSON is not what docs/json says.
const exitSchema = 99

// judged is main as the scripts run it: whatever a command prints with --format json
// is held against its schema in docs/json, in every script.
func judged() {
	stdout := os.Stdout
	info, err := stdout.Stat()
	command, asked := asksForJSON(os.Args[1:])
	if !asked || err != nil || info.Mode()&os.ModeCharDevice != 0 { // a terminal, or /dev/full
		main()
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	os.Stdout = w
	printed := make(chan []byte)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(io.MultiWriter(&b, stdout), r) // a reader that went away is the script's affair
		printed <- b.Bytes()
	}()
	code := run(os.Args[1:])
	w.Close()
	if text := <-printed; len(text) > 0 {
		if err := checkPrinted(command, text); err != nil {
			fmt.Fprintf(os.Stderr, "docs/json: %v\n%s", err, text)
			code = exitSchema
		}
	}
	os.Exit(code)
}

// asksForJSON returns the command that args name, and whether its result is to be JSON.
func asksForJSON(args []string) (command string, asked bool) {
	app := newApp(&session{printer: &printer{}})
	for i, arg := range args {
		c := app.Command(arg)
		switch {
		case command == "" && c != nil:
			command = c.Name
		case arg == "--format=json", arg == "json" && i > 0 && args[i-1] == "--format":
			asked = true
		}
	}
	return command, asked && command != "" && !slices.Contains(bytesAlone, command)
}

func schemaFile(command string) string {
	return filepath.Join(testenv.Root(), "docs", "json", command+".json")
}

// checkPrinted holds what a command printed against its schema.
func checkPrinted(command string, text []byte) error {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile(command))
	if err != nil {
		return fmt.Errorf("the schema of %s: %w", command, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// bytesAlone are the commands whose result is not theirs to describe.
var bytesAlone = []string{"cat", "completion", "manifest", "sbom"}

// Every command that prints JSON has a schema, which allows no field that it does not
// describe, a line in docs/json/README.md, and a script that has it print; every field
// has a description.
func TestSchemas(t *testing.T) {
	listed, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "json", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var scripts []byte
	names, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, b...)
	}
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	app := newApp(&session{printer: &printer{}})
	for _, c := range app.Commands {
		if slices.Contains(bytesAlone, c.Name) || !slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), "format") }) {
			continue
		}
		name := schemaFile(c.Name)
		files[filepath.Base(name)] = true
		b, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%s has --format and no schema: %v (docs/json/README.md says what one is)", c.Name, err)
			continue
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkSchema(t, c.Name, v)
		if root, _ := v.(map[string]any); root["$schema"] != "https://json-schema.org/draft/2020-12/schema" ||
			!strings.HasSuffix(fmt.Sprint(root["$id"]), "/docs/json/"+c.Name+".json") {
			t.Errorf("%s: got the $schema %v and the $id %v", c.Name, root["$schema"], root["$id"])
		}
		if !bytes.Contains(listed, []byte("("+c.Name+".json)")) {
			t.Errorf("docs/json/README.md does not list %s.json", c.Name)
		}
		if !regexp.MustCompile(`carton-oci ` + c.Name + ` .*--format[ =]json`).Match(scripts) {
			t.Errorf("no script has %s print JSON", c.Name)
		}
	}
	there, err := filepath.Glob(schemaFile("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range there {
		if !files[filepath.Base(name)] {
			t.Errorf("%s is of no command", filepath.Base(name))
		}
	}
}

// checkSchema looks at every object of a schema.
func checkSchema(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			checkSchema(t, fmt.Sprintf("%s/%d", at, i), item)
		}
	case map[string]any:
		properties, ok := v["properties"].(map[string]any)
		if ok && v["additionalProperties"] != false {
			t.Errorf("%s: allows fields that it does not describe", at)
		}
		for name, p := range properties {
			if described, _ := p.(map[string]any); described["description"] == nil {
				t.Errorf("%s: %s has no description", at, name)
			}
		}
		for key, item := range v {
			checkSchema(t, at+"/"+key, item)
		}
	}
}

// What a schema does not describe is refused, in the middle as at the top.
func TestSchemasRefuse(t *testing.T) {
	good := `{"reference":"h.io/m:1","modelHash":"` + strings.Repeat("a", 64) + `","members":[{"path":"a","size":null,"hash":"","place":"blob"}]}`
	if err := checkPrinted("ls", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"members"`, `"extra":1,"members"`}, {`"size":null`, `"size":"1"`}, {`"size":null,`, ``}, {`"place"`, `"more":1,"place"`}, {`"blob"`, `"elsewhere"`},
	} {
		if err := checkPrinted("ls", []byte(strings.Replace(good, c[0], c[1], 1))); err == nil {
			t.Errorf("%s in the place of %s is taken", c[1], c[0])
		}
	}
}
