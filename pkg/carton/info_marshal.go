package carton

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/internal/tomltext"
)

// Marshal returns the bytes of a carton.toml, a function of what info holds alone.
// Text that is not UTF-8, and a value that an option can't have, is ErrFormat;
// [ParseInfo] judges the rest.
func (i *Info) Marshal() ([]byte, error) {
	info := *i
	info.SpecVersion = 1
	var b strings.Builder
	for _, t := range info.tables() {
		if t.head != "" {
			b.WriteString("\n" + t.head + "\n")
		}
		for _, f := range t.fields {
			_, badKey := tomltext.Value(f.key)
			value, err := tomltext.Value(f.value)
			if badKey != nil {
				err = badKey
			}
			if err != nil {
				return nil, &Error{Path: InfoName, Kind: ErrFormat, Msg: t.at + quotePath(f.key), Err: err}
			}
			if t.head == "" && f.key == modelDescription {
				value = tomltext.Lines(i.ModelDescription)
			}
			fmt.Fprintf(&b, "%s = %s\n", tomltext.Key(f.key), value)
		}
		b.WriteString(t.raw)
	}
	return []byte(b.String()), nil
}

// infoTable is a table of carton.toml.
type infoTable struct {
	head   string // "[runner]", "[[input]]"; "" at the top
	at     string // what the keys of its fields begin with: "runner.", "input.x."
	test   bool   // it is a test or an example
	fields []infoField
	raw    string // TOML behind the fields
}

// infoField has a value that tomltext writes.
type infoField struct {
	key   string
	value any
}

// add adds a field, unless its value is an empty text.
func (t *infoTable) add(key string, value any) {
	if value != "" {
		t.fields = append(t.fields, infoField{key, value})
	}
}

// tables returns what carton.toml holds, in the order of the specification.
func (i *Info) tables() []infoTable {
	var top infoTable
	if i.SpecVersion != 0 {
		top.add("spec_version", int64(i.SpecVersion))
	}
	for _, f := range infoTexts {
		top.add(f.key, *f.of(i))
	}
	if len(i.RequiredPlatforms) > 0 {
		top.add("required_platforms", anySlice(i.RequiredPlatforms))
	}
	tables := slices.Concat([]infoTable{top}, specTables("input", i.Inputs), specTables("output", i.Outputs))
	for _, kind := range testKinds {
		for n, t := range *kind.of(i) {
			test := namedTable(kind.table, n, t.Name)
			test.test = true
			test.add("description", t.Description)
			test.add("inputs", t.Inputs)
			if kind.example || len(t.Outputs) > 0 { // loaders want an example's there, if empty
				test.add(kind.outputs, t.Outputs)
			}
			tables = append(tables, test)
		}
	}
	runner := infoTable{head: "[runner]", at: "runner."}
	for _, f := range runnerTexts {
		runner.add(f.key, *f.of(i))
	}
	if i.Runner.CompatVersion != nil {
		runner.add("runner_compat_version", *i.Runner.CompatVersion)
	}
	opts := infoTable{head: "[runner.opts]", at: "runner.opts."}
	for _, key := range sortedKeys(i.Runner.Opts) {
		opts.fields = append(opts.fields, infoField{key, i.Runner.Opts[key]})
	}
	tables = append(tables, runner, opts, infoTable{raw: i.Extra}, textTable("categories", i.Categories),
		textTable("annotations", i.Annotations))
	return slices.DeleteFunc(tables, func(t infoTable) bool { return len(t.fields) == 0 && t.raw == "" })
}

// textTable writes a table of texts.
func textTable(name string, texts map[string]string) infoTable {
	table := infoTable{head: "[" + name + "]", at: name + "."}
	for _, key := range sortedKeys(texts) {
		table.fields = append(table.fields, infoField{key, texts[key]})
	}
	return table
}

func specTables(kind string, specs []TensorSpec) []infoTable {
	var tables []infoTable
	for n, s := range specs {
		t := namedTable(kind, n, s.Name)
		t.add("dtype", string(s.DType))
		t.add("shape", s.Shape.value())
		t.add("description", s.Description)
		t.add("internal_name", s.InternalName)
		tables = append(tables, t)
	}
	return tables
}

// namedTable begins the n-th table of a kind.
func namedTable(kind string, n int, name string) infoTable {
	t := infoTable{head: "[[" + kind + "]]"}
	t.add("name", name)
	if name == "" {
		name = strconv.Itoa(n + 1)
	}
	t.at = kind + "." + name + "."
	return t
}

func anySlice(texts []string) []any {
	values := make([]any, len(texts))
	for i, s := range texts {
		values[i] = s
	}
	return values
}
