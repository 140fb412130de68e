package carton

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/tomltext"
)

// textField is a field of carton.toml that holds a text: how it is called, where
// an [Info] keeps it, and what it must be. A new one is a line of a table below,
// and is read, written, compared and checked by it.
type textField struct {
	key      string
	of       func(*Info) *string
	required bool
	check    func(string) error // of a text that is there; nil: any will do
	severity Severity           // of what check finds
}

// infoTexts are those at the top, in the order of the specification.
var infoTexts = []textField{
	{key: "model_name", of: func(i *Info) *string { return &i.ModelName }},
	{key: "short_description", of: func(i *Info) *string { return &i.ShortDescription }, check: checkShort},
	{key: modelDescription, of: func(i *Info) *string { return &i.ModelDescription }},
	{key: "license", of: func(i *Info) *string { return &i.License }, check: CheckLicense},
	{key: "repository", of: func(i *Info) *string { return &i.Repository }, check: checkWebURL},
	{key: "homepage", of: func(i *Info) *string { return &i.Homepage }, check: checkWebURL},
}

// runnerTexts are those of [runner].
var runnerTexts = []textField{
	{key: "runner_name", of: func(i *Info) *string { return &i.Runner.Name }, required: true},
	{
		key: "required_framework_version", of: func(i *Info) *string { return &i.Runner.RequiredFrameworkVersion },
		required: true, check: CheckVersionReq, severity: SeverityError,
	},
}

// modelDescription is the one text that is written on several lines.
const modelDescription = "model_description"

// ShortDescriptionChars is the length of the longest short_description that is not warned of, in
// characters. https://github.com/VivekPanyam/carton, docs/specification/format.md
const ShortDescriptionChars = 100

func checkShort(text string) error {
	if n := utf8.RuneCountInString(text); n > ShortDescriptionChars {
		return fmt.Errorf("is %d characters long, should be at most %d", n, ShortDescriptionChars)
	}
	return nil
}

// checkWebURL wants an http or https URL with a host.
func checkWebURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("%s is not a URL like https://host/path", quoteShort(text))
	}
	return nil
}

// readTexts reads the text fields of a table into info.
func (t tomlTable) readTexts(fields []textField, info *Info) {
	for _, f := range fields {
		read := t.text
		if f.required {
			read = t.needText
		}
		text := read(f.key)
		*f.of(info) = text
		if f.check == nil || text == "" {
			continue
		}
		if err := f.check(text); err != nil {
			t.faults.add(f.severity, ErrFormat, "%s%s: %v", t.at, f.key, err)
		}
	}
}

// Field is a value of a carton.toml.
type Field struct {
	// Key says where it is: "license", "runner.opts.x", "input.image.shape". Inputs,
	// outputs, tests and examples go by their names, those without by their number.
	Key string
	// TOML is the value as carton.toml has it, on one line.
	TOML string
	// Text is the value without quotes and brackets; a list has commas.
	Text string
}

// Fields returns every field that has a value, in the order of carton.toml. A test
// and an example have one of their own, {}, beside those in it.
func (i *Info) Fields() []Field {
	var fields []Field
	for _, t := range i.tables() {
		if t.test {
			fields = append(fields, Field{strings.TrimSuffix(t.at, "."), "{}", "{}"})
		}
		for _, f := range t.fields {
			refs, isRefs := f.value.(map[string]string)
			for _, name := range sortedKeys(refs) {
				fields = append(fields, fieldOf(t.at+f.key+"."+name, refs[name]))
			}
			inKey := f.key == "name" && strings.HasPrefix(t.head, "[[")
			if !isRefs && !inKey {
				fields = append(fields, fieldOf(t.at+f.key, f.value))
			}
		}
	}
	return fields
}

func fieldOf(key string, value any) Field {
	toml, _ := tomltext.Value(value)
	text := toml
	switch v := value.(type) {
	case string:
		text = v
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = fmt.Sprint(v[i])
		}
		text = strings.Join(words, ",")
	}
	return Field{key, toml, text}
}
