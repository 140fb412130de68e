package carton

import (
	"errors"
	"fmt"
	"strings"
)

// parseInfo reads as much of a carton.toml as can be read, and all that is
// wrong with it. The Info is nil where it is no TOML or of another version.
func parseInfo(b []byte) (*Info, *faults) {
	f := &faults{path: InfoName}
	values, err := decodeTOML(InfoName, b, MaxInfoBytes, MaxTOMLItems)
	if err != nil {
		f.addErr(err)
		return nil, f
	}
	t := tomlTable{values: values, faults: f}
	if !parseSpecVersion(t) {
		return nil, f
	}
	info := &Info{SpecVersion: 1}
	t.readTexts(infoTexts, info)
	info.Inputs, info.Outputs = parseSpecs(t, "input"), parseSpecs(t, "output")
	parseRunner(t, info)
	info.RequiredPlatforms, _ = t.texts("required_platforms")
	for _, p := range info.RequiredPlatforms {
		if err := checkPlatform(p); err != nil {
			t.errorf("required_platforms", "%v", err)
		}
	}
	for _, kind := range testKinds {
		tests := kind.of(info)
		for _, table := range t.tables(kind.table) {
			*tests = append(*tests, kind.parse(table))
		}
	}
	info.Categories, info.Annotations = parseTexts(values, "categories"), parseTexts(values, "annotations")
	warnSymbols(info, f)
	return info, f
}

// parseTexts reads a table of ours. Another's table of that name is no fault.
func parseTexts(values map[string]any, name string) map[string]string {
	table, _ := values[name].(map[string]any)
	var out map[string]string
	for key, v := range table {
		if text, ok := v.(string); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = text
		}
	}
	return out
}

// parseSpecVersion reports whether spec_version is one that can be read on.
func parseSpecVersion(t tomlTable) bool {
	switch v := t.values["spec_version"].(type) {
	case nil:
		t.errorf("spec_version", "is missing, and should be 1")
	case int64:
		if v == 1 {
			return true
		}
		t.faults.add(SeverityError, ErrVersion, "spec_version: is %d, and should be 1", v)
	default:
		t.errorf("spec_version", "is %s, and should be the integer 1", describe(v))
	}
	return false
}

func parseRunner(t tomlTable, info *Info) {
	if _, there := t.values["runner"]; !there {
		t.errorf("runner", "is missing: no runner_name says what loads the model")
		return
	}
	r, ok := t.table("runner")
	if !ok {
		return
	}
	r.readTexts(runnerTexts, info)
	switch v := r.values["runner_compat_version"].(type) {
	case nil:
		r.faults.loaderf("runner.runner_compat_version: is missing")
	case int64:
		if v < 0 {
			r.errorf("runner_compat_version", "is %d, and should be 0 or more", v)
			break
		}
		n := uint64(v)
		info.Runner.CompatVersion = &n
	default:
		r.errorf("runner_compat_version", "is %s, and should be an integer", describe(v))
	}
	opts, ok := r.table("opts")
	if !ok {
		return
	}
	info.Runner.Opts = opts.values
	for _, k := range sortedKeys(opts.values) {
		switch opts.values[k].(type) {
		case int64, float64, string, bool:
		default:
			opts.errorf(quotePath(k), "is %s, and should be an integer, float, string or bool",
				describe(opts.values[k]))
			delete(opts.values, k)
		}
	}
}

func parseSpecs(t tomlTable, key string) []TensorSpec {
	var specs []TensorSpec
	seen := map[string]bool{}
	for _, s := range t.tables(key) {
		spec := TensorSpec{
			Name:         s.needText("name"),
			DType:        s.dtype(),
			Shape:        s.shape(),
			Description:  s.text("description"),
			InternalName: s.text("internal_name"),
		}
		if spec.DType == Nested {
			s.errorf("dtype", "nested is for tensor_data/index.toml only")
		}
		if seen[spec.Name] && spec.Name != "" {
			s.errorf("name", "%s occurs twice", quoteShort(spec.Name))
		}
		seen[spec.Name] = true
		specs = append(specs, spec)
	}
	return specs
}

// testKind is a kind of [Test]: how carton.toml has it, and what is wrong with it.
type testKind struct {
	table, outputs string // how the tables are called, and what is Outputs in them
	of             func(*Info) *[]Test
	example        bool
	undeclared     Severity // of a name that the model does not declare
}

var testKinds = []testKind{
	{
		table: "self_test", outputs: "expected_out", of: func(i *Info) *[]Test { return &i.SelfTests },
		undeclared: SeverityError,
	},
	{
		table: "example", outputs: "sample_out", of: func(i *Info) *[]Test { return &i.Examples },
		example: true, undeclared: SeverityWarning, // nothing runs an example: loaders show it, whatever is declared
	},
}

func (k testKind) parse(t tomlTable) Test {
	inputs, there := t.values["inputs"]
	refs, isTable := inputs.(map[string]any)
	switch {
	case k.example:
		for _, key := range []string{"inputs", k.outputs} {
			if _, there := t.values[key]; !there {
				t.faults.loaderf("%s%s: is missing", t.at, key)
			}
		}
	case !there:
		t.errorf("inputs", "is missing")
	case isTable && len(refs) == 0:
		t.faults.warnf("%sinputs: is empty: there is nothing to test the model with", t.at)
	}
	return Test{
		Name:        t.text("name"),
		Description: t.text("description"),
		Inputs:      t.references("inputs", k.example),
		Outputs:     t.references(k.outputs, k.example),
	}
}

// Prefixes of references to other members.
const (
	tensorPrefix = "@tensor_data/"
	miscPrefix   = "@misc/"
)

// references reads a table of references to tensors, and to files of misc/
// where misc is set.
func (t tomlTable) references(key string, misc bool) map[string]string {
	refs := t.textTable(key)
	for _, name := range sortedKeys(refs) {
		ref := refs[name]
		at := fmt.Sprintf("%s%s.%s: ", t.at, key, quotePath(name))
		switch file, isMisc := strings.CutPrefix(ref, miscPrefix); {
		case isMisc && misc:
			if err := CheckPath("misc/" + file); err != nil {
				t.faults.add(SeverityError, ErrInsecurePath, "%s%s: %v", at, quoteShort(ref), err)
			}
		case strings.HasPrefix(ref, tensorPrefix) && ref != tensorPrefix:
		case misc:
			t.faults.errorf("%sis %s, and should be @tensor_data/NAME or @misc/PATH", at, quoteShort(ref))
		default:
			t.faults.errorf("%sis %s, and should be @tensor_data/NAME", at, quoteShort(ref))
		}
	}
	return refs
}

// addErr notes an error that has its path and kind already.
func (f *faults) addErr(err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Path: f.path, Kind: ErrFormat, Err: err}
	}
	f.list = append(f.list, Finding{Severity: SeverityError, Path: f.path, Err: e})
}
