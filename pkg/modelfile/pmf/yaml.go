package pmf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"go.yaml.in/yaml/v3"
)

// report collects what is wrong with one tree.
type report struct {
	file       string // the document's path
	violations []Violation
	warnings   []Violation
}

func (r *report) violate(rule Rule, path string, line int, format string, args ...any) {
	r.violations = append(r.violations, Violation{
		Path: path, Line: line, Rule: rule,
		Msg: fmt.Sprintf(format, args...),
	})
}

func (r *report) warn(rule Rule, path string, line int, format string, args ...any) {
	r.warnings = append(r.warnings, Violation{Path: path, Line: line, Rule: rule, Msg: fmt.Sprintf(format, args...)})
}

// value is a value of a document, or the place where one is missing.
type value struct {
	node *yaml.Node // never an alias; nil where there is none
	at   string     // "model.training.latest"; "" for the whole document
	r    *report
}

// versionDirective is a %YAML directive of a version 1, which PyYAML accepts
// whatever the minor number is, and reads as 1.1. The parser here knows 1.1 only.
var versionDirective = regexp.MustCompile(`(\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*%YAML[ \t]+1\.)[0-9]+`)

// document parses the bytes of a document. What is no YAML is a violation, and
// gives a value that is not there.
func (r *report) document(raw []byte) value {
	nothing := value{r: r}
	switch {
	case len(raw) > MaxMetadataBytes:
		r.violate(RuleSize, r.file, 0, "is longer than %d bytes", MaxMetadataBytes)
		return nothing
	case !utf8.Valid(raw):
		r.violate(RuleSyntax, r.file, 0, "is not UTF-8")
		return nothing
	}
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(versionDirective.ReplaceAll(raw, []byte("${1}1"))))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		r.violate(RuleSyntax, r.file, 0, "is empty")
		return nothing
	}
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			r.violate(RuleDocuments, r.file, more.Line, "a second document begins here: leave one")
			return nothing
		}
	}
	if !errors.Is(err, io.EOF) {
		r.violate(RuleSyntax, r.file, 0, "%v", err)
		return nothing
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.violate(RuleSyntax, r.file, 0, "is empty")
		return nothing
	}
	return r.value(doc.Content[0], "")
}

// value returns a node as a value, through an alias. Aliases are followed when
// they are met and never expanded, so that a document costs what its schema can
// reach, once.
func (r *report) value(n *yaml.Node, at string) value {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return value{node: n, at: at, r: r}
}

func (v value) there() bool { return v.node != nil }

// maps reports whether a value is a mapping.
func (v value) maps() bool { return v.there() && v.kind() == kindMapping }

// path is where the value is, for violations.
func (v value) path() string {
	if v.at == "" {
		return v.r.file
	}
	return v.r.file + ": " + v.at
}

func (v value) line() int {
	if v.node == nil {
		return 0
	}
	return v.node.Line
}

func (v value) violate(rule Rule, format string, args ...any) {
	v.r.violate(rule, v.path(), v.line(), format, args...)
}

func (v value) warn(rule Rule, format string, args ...any) {
	v.r.warn(rule, v.path(), v.line(), format, args...)
}

// below is the place of a key in a mapping.
func (v value) below(key string) string {
	if v.at == "" {
		return key
	}
	return v.at + "." + key
}

// entry is one key of a mapping and its value.
type entry struct {
	key   value
	value value
}

// entries returns what a mapping holds, in order. What is no mapping is a
// violation, as are merge keys and keys that come twice; those are left out.
func (v value) entries() []entry {
	if !v.there() {
		return nil
	}
	if v.kind() != kindMapping {
		v.wrongType("a mapping")
		return nil
	}
	var list []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := v.r.value(v.node.Content[i], v.at)
		id := key.identity()
		key.at = v.below(errtext.Quote(key.node.Value))
		switch {
		case key.kind() == kindMerge:
			key.violate(RuleMerge, "merge keys are not read: write the values out")
			continue
		case seen[id]:
			key.violate(RuleDuplicateKey, "occurs twice")
			continue
		}
		seen[id] = true
		list = append(list, entry{key: key, value: v.r.value(v.node.Content[i+1], key.at)})
	}
	return list
}

// mapping returns the values of a mapping whose keys are strings.
func (v value) mapping() map[string]value {
	m := map[string]value{}
	for _, e := range v.entries() {
		if e.key.kind() == kindString {
			m[e.key.node.Value] = e.value
		}
	}
	return m
}

// section returns the values of a mapping with these keys. One that is missing
// is a violation, unless it is among the optional ones, and comes back as a
// value that is not there; one that is unknown is a warning.
func (v value) section(keys, optional []string) map[string]value {
	if !v.there() || v.kind() != kindMapping {
		v.entries() // says what is wrong
		return map[string]value{}
	}
	m := map[string]value{}
	for _, e := range v.entries() {
		name := e.key.node.Value
		if e.key.kind() != kindString || !slices.Contains(keys, name) && !slices.Contains(optional, name) {
			e.key.warn(RuleUnknownKey, "is no key of the format")
			continue
		}
		m[name] = e.value
	}
	for _, key := range keys {
		if !m[key].there() {
			v.r.violate(RuleMissingKey, v.r.file+": "+v.below(key), v.line(), "is missing")
		}
	}
	return m
}
