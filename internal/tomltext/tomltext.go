// Package tomltext writes pieces of TOML documents: what is written into a file
// that a digest depends on is a function of the value alone, in this version and
// every other. https://toml.io/en/v1.0.0
package tomltext

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Quote writes a basic string. What is not UTF-8 becomes U+FFFD.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Lines writes a text of several lines as a person would: between ”', as it is,
// or where it can't be between """, with escapes. A text of one line is as [Quote]
// writes it.
func Lines(s string) string {
	if !strings.Contains(s, "\n") {
		return Quote(s)
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	if strings.IndexFunc(s, control) < 0 && !strings.Contains(s, "'''") && !strings.HasSuffix(s, "'") {
		return "'''\n" + s + "'''"
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		line = Quote(line)
		lines[i] = line[1 : len(line)-1]
	}
	return `"""` + "\n" + strings.Join(lines, "\n") + `"""`
}

// Key writes a key: bare where it can be, else quoted.
func Key(s string) string {
	const bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if s == "" || strings.Trim(s, bare) != "" {
		return Quote(s)
	}
	return s
}

// Value writes a string, boolean, number, list or table of strings on one line. Of
// text that is not UTF-8 there is an error beside what [Quote] makes of it.
func Value(v any) (string, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return Quote(v), fmt.Errorf("the text %s is not UTF-8", strconv.QuoteToASCII(v))
		}
		return Quote(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case float64:
		s := strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)) // nan and inf are TOML's words, too
		if strings.Trim(s, "-0123456789") == "" {
			s += ".0"
		}
		return s, nil
	case []any:
		return list(v)
	case map[string]string:
		return table(v)
	}
	return "", fmt.Errorf("TOML has no %T here, only integers, floats, booleans and strings", v)
}

func list(values []any) (string, error) {
	texts, errs := make([]string, len(values)), make([]error, len(values))
	for i, v := range values {
		texts[i], errs[i] = Value(v)
	}
	return "[" + strings.Join(texts, ", ") + "]", errors.Join(errs...)
}

// table writes an inline table, sorted by key.
func table(values map[string]string) (string, error) {
	if len(values) == 0 {
		return "{}", nil
	}
	var pairs []string
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		_, bad := Value(key)
		text, err := Value(values[key])
		pairs, errs = append(pairs, Key(key)+" = "+text), append(errs, bad, err)
	}
	return "{ " + strings.Join(pairs, ", ") + " }", errors.Join(errs...)
}
