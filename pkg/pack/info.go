package pack

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/tomltext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// info writes carton.toml: what was given, what the files told, and the tests.
// Its bytes are a function of that alone, in the order of the specification.
func (p *packer) info(tests []writtenTest) ([]byte, error) {
	p.fillRunner()
	o := &p.opts
	if missing := Missing(o.Runner, o.FrameworkVersion, o.RunnerOpts); missing != nil {
		return nil, missing
	}
	w := &infoWriter{}
	w.b.WriteString("spec_version = 1\n")
	w.text("model_name", o.Name)
	w.text("short_description", o.ShortDescription)
	w.lines("model_description", o.ModelDescription)
	w.text("license", o.License)
	w.text("repository", o.Repository)
	w.text("homepage", o.Homepage)
	if len(o.Platforms) > 0 {
		w.line("required_platforms", "["+strings.Join(w.quoteAll(o.Platforms), ", ")+"]")
	}
	w.specs("input", o.Inputs)
	w.specs("output", o.Outputs)
	w.tests(tests)
	w.table("[runner]")
	w.line("runner_name", w.quote(o.Runner))
	w.line("required_framework_version", w.quote(o.FrameworkVersion))
	w.line("runner_compat_version", strconv.FormatUint(*o.RunnerCompat, 10))
	if len(o.RunnerOpts) > 0 {
		w.table("[runner.opts]")
	}
	for _, key := range slices.Sorted(maps.Keys(o.RunnerOpts)) {
		value, err := tomltext.Value(o.RunnerOpts[key])
		if err != nil {
			return nil, optionsf("the runner's option %s: %v", carton.QuotePath(key), err)
		}
		if text, ok := o.RunnerOpts[key].(string); ok {
			w.quote(text) // for what it finds
		}
		w.line(w.key(key), value)
	}
	if p.pmf != nil {
		w.pmf(p.pmf)
		w.categories(p.roles())
	}
	if w.bad != "" {
		return nil, optionsf("got the text %s, want UTF-8", carton.QuotePath(w.bad))
	}
	return []byte(w.b.String()), nil
}

// fillRunner fills in what is known of the runner.
func (p *packer) fillRunner() {
	o := &p.opts
	if v := FrameworkOf(o.Runner); v != "" && o.FrameworkVersion == "" {
		o.FrameworkVersion = v
		p.fill("runner.required_framework_version", "*", "noop has no framework")
	}
	if o.RunnerCompat != nil || o.Runner == "" {
		return
	}
	compat, from := uint64(1), "assumed: the runner is not known here"
	if r := knownRunner(o.Runner); r != nil {
		compat, from = r.Compat, "what the runner "+r.Name+" reads"
	}
	o.RunnerCompat = &compat
	p.fill("runner.runner_compat_version", strconv.FormatUint(compat, 10), from)
}

// infoWriter writes TOML.
type infoWriter struct {
	b   strings.Builder
	bad string // the first text that is no UTF-8
}

// quote writes a string.
func (w *infoWriter) quote(s string) string {
	if w.bad == "" && !utf8.ValidString(s) {
		w.bad = s
	}
	return tomltext.Quote(s)
}

// key writes a key.
func (w *infoWriter) key(s string) string {
	w.quote(s) // for what it finds
	return tomltext.Key(s)
}

func (w *infoWriter) line(key, value string) { fmt.Fprintf(&w.b, "%s = %s\n", key, value) }

func (w *infoWriter) text(key, value string) {
	if value != "" {
		w.line(key, w.quote(value))
	}
}

// lines writes a text that may have several lines.
func (w *infoWriter) lines(key, value string) {
	if value != "" {
		w.quote(value) // for what it finds
		w.line(key, tomltext.Lines(value))
	}
}

func (w *infoWriter) table(head string) { w.b.WriteString("\n" + head + "\n") }

func (w *infoWriter) specs(key string, specs []carton.TensorSpec) {
	for _, s := range specs {
		w.table("[[" + key + "]]")
		w.line("name", w.quote(s.Name))
		w.line("dtype", w.quote(string(s.DType)))
		w.line("shape", w.shape(s.Shape))
		w.text("description", s.Description)
		w.text("internal_name", s.InternalName)
	}
}

// tests writes self tests before examples, as the specification does.
func (w *infoWriter) tests(tests []writtenTest) {
	for _, example := range []bool{false, true} {
		head, outputs := "[[self_test]]", "expected_out"
		if example {
			head, outputs = "[[example]]", "sample_out"
		}
		for _, t := range tests {
			if t.example != example {
				continue
			}
			w.table(head)
			w.text("name", t.name)
			w.text("description", t.description)
			w.line("inputs", w.refs(t.inputs))
			if len(t.outputs) > 0 || example { // loaders want both tables in an example
				w.line(outputs, w.refs(t.outputs))
			}
		}
	}
}

// refs writes an inline table, sorted by key.
func (w *infoWriter) refs(refs map[string]string) string {
	if len(refs) == 0 {
		return "{}"
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		pairs = append(pairs, w.key(name)+" = "+w.quote(refs[name]))
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}

func (w *infoWriter) shape(s carton.Shape) string {
	if s.Symbol != "" {
		return w.quote(s.Symbol)
	}
	dims := make([]string, len(s.Dims))
	for i, d := range s.Dims {
		if dims[i] = strconv.FormatInt(d.Size, 10); d.Symbol != "" {
			dims[i] = w.quote(d.Symbol)
		}
	}
	return "[" + strings.Join(dims, ", ") + "]"
}

func (w *infoWriter) quoteAll(list []string) []string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = w.quote(s)
	}
	return quoted
}
