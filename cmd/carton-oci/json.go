package main

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/internal/secret"
)

// object prints the result as JSON: a struct's fields one by one, and of its
// lists the items, so that no more than one of them is in memory twice.
func (p *printer) object(v any) {
	whole := reflect.Indirect(reflect.ValueOf(v))
	if whole.Kind() != reflect.Struct {
		p.write(p.encoded(v, "") + "\n")
		return
	}
	separator := "{\n  "
	for _, f := range reflect.VisibleFields(whole.Type()) { // an embedded struct's are the whole's
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := whole.FieldByIndex(f.Index)
		if f.Anonymous || name == "-" || options == "omitempty" &&
			(field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0) {
			continue
		}
		p.write(separator + strconv.Quote(name) + ": ")
		separator = ",\n  "
		if field.Kind() == reflect.Slice && field.Len() > 0 {
			p.list(field)
		} else {
			p.write(p.encoded(field.Interface(), "  "))
		}
	}
	p.write("\n}\n")
}

// listOf converts the items of a list. An empty one is [] in JSON, never null.
func listOf[T, U any](items []T, convert func(T) U) []U {
	out := make([]U, 0, len(items))
	for _, item := range items {
		out = append(out, convert(item))
	}
	return out
}

// list prints the list that a field holds.
func (p *printer) list(items reflect.Value) {
	separator := "[\n    "
	for i := range items.Len() {
		p.write(separator + p.encoded(items.Index(i).Interface(), "    "))
		separator = ",\n    "
	}
	p.write("\n  ]")
}

// encoded returns v as JSON, each line but the first behind prefix.
func (p *printer) encoded(v any, prefix string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, "  ")
	if err := enc.Encode(v); err != nil {
		p.failed = cmp.Or(p.failed, err)
	}
	return strings.TrimSuffix(escapeJSON(secret.StrikeResult(b.String())), "\n")
}
