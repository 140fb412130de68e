package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// FieldChange is a field of carton.toml that differs. A or B is "" where the
// field is missing; other values are as TOML writes them.
type FieldChange struct {
	Field string `json:"field"` // "runner.runner_name", "input.x.shape"
	A     string `json:"a"`     // as TOML writes it; "" where it is missing
	B     string `json:"b"`
}

// compareInfo compares carton.toml field by field, where its bytes differ. One
// that breaks the format is a note.
func (d *Difference) compareInfo(ctx context.Context, a, b carton.Source) error {
	i := slices.IndexFunc(d.Changed, func(c Change) bool { return c.A.Path == carton.InfoName })
	if i < 0 {
		return nil
	}
	var fields [2]map[string]string
	for n, src := range []carton.Source{a, b} {
		text, err := carton.ReadMember(ctx, src, carton.InfoName, carton.MaxInfoBytes)
		if err != nil {
			return err
		}
		info, err := carton.ParseInfo(text)
		if err != nil {
			note := strings.TrimPrefix(err.Error(), carton.InfoName+": ")
			d.Notes = append(d.Notes, Note{Member: carton.InfoName, Text: [2]string{"of the first carton: ", "of the second carton: "}[n] + note})
			return nil
		}
		fields[n] = fieldsOf(info)
	}
	names := maps.Clone(fields[0])
	maps.Copy(names, fields[1])
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if x, y := fields[0][name], fields[1][name]; x != y {
			d.Info = append(d.Info, FieldChange{name, x, y})
		}
	}
	return nil
}

// fieldsOf flattens a carton.toml. Inputs, outputs, tests and examples go by
// their names, those without by their number.
func fieldsOf(info *carton.Info) map[string]string {
	f := fields{}
	f.text("model_name", info.ModelName)
	f.text("short_description", info.ShortDescription)
	f.text("model_description", info.ModelDescription)
	f.text("license", info.License)
	f.text("repository", info.Repository)
	f.text("homepage", info.Homepage)
	f.set("required_platforms", list(info.RequiredPlatforms))
	f.set("spec_version", strconv.Itoa(info.SpecVersion))
	f.text("runner.runner_name", info.Runner.Name)
	f.text("runner.required_framework_version", info.Runner.RequiredFrameworkVersion)
	if v := info.Runner.CompatVersion; v != nil {
		f.set("runner.runner_compat_version", strconv.FormatUint(*v, 10))
	}
	for name, v := range info.Runner.Opts {
		if text, ok := v.(string); ok {
			v = strconv.Quote(text)
		}
		f.set("runner.opts."+name, fmt.Sprint(v))
	}
	for member, name := range info.Categories {
		f.text("categories."+carton.QuotePath(member), name)
	}
	f.specs("input", info.Inputs)
	f.specs("output", info.Outputs)
	for i, t := range info.SelfTests {
		at := numbered("self_test", t.Name, i)
		f.set(at, "{}")
		f.text(at+".description", t.Description)
		f.texts(at+".inputs", t.Inputs)
		f.texts(at+".expected_out", t.ExpectedOut)
	}
	for i, e := range info.Examples {
		at := numbered("example", e.Name, i)
		f.set(at, "{}")
		f.text(at+".description", e.Description)
		f.texts(at+".inputs", e.Inputs)
		f.texts(at+".sample_out", e.SampleOut)
	}
	return f
}

// fields are values by the names of fields. Nothing is kept of empty ones.
type fields map[string]string

func (f fields) set(name, value string) {
	if value != "" {
		f[name] = value
	}
}

func (f fields) text(name, value string) {
	if value != "" {
		f[name] = strconv.Quote(value)
	}
}

func (f fields) texts(at string, values map[string]string) {
	for name, v := range values {
		f.text(at+"."+name, v)
	}
}

func (f fields) specs(kind string, specs []carton.TensorSpec) {
	for i, t := range specs {
		at := numbered(kind, t.Name, i)
		f.text(at+".dtype", string(t.DType))
		f.set(at+".shape", t.Shape.String())
		f.text(at+".description", t.Description)
		f.text(at+".internal_name", t.InternalName)
	}
}

func numbered(kind, name string, i int) string {
	if name == "" {
		name = strconv.Itoa(i + 1)
	}
	return kind + "." + name
}

func list(values []string) string {
	if len(values) == 0 {
		return ""
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
