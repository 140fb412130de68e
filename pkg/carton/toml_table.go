package carton

import (
	"fmt"
	"strconv"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// tomlTable reads typed values of a parsed TOML table, and notes every fault
// with where it is. Keys that nobody asks for are ignored, as the format says.
type tomlTable struct {
	values map[string]any
	at     string // "runner.", "input 2: "; "" at the top
	faults *faults
}

// faults collects what is wrong with one file.
type faults struct {
	path string
	list []Finding
}

func (f *faults) errorf(format string, args ...any) {
	f.add(SeverityError, ErrFormat, format, args...)
}

func (f *faults) warnf(format string, args ...any) {
	f.add(SeverityWarning, ErrFormat, format, args...)
}

// loaderf notes what the reference loader fails on.
func (f *faults) loaderf(format string, args ...any) {
	f.add(SeverityLoader, ErrFormat, loaderFails+format, args...)
}

func (f *faults) add(s Severity, kind error, format string, args ...any) {
	f.list = append(f.list, Finding{Severity: s, Path: f.path, Err: errorf(kind, f.path, format, args...)})
}

// first returns the first error, nil where the file can be read.
func (f *faults) first() error {
	for _, found := range f.list {
		if found.Severity == SeverityError {
			return found.Err
		}
	}
	return nil
}

func (t tomlTable) errorf(key, format string, args ...any) {
	t.faults.errorf("%s%s: %s", t.at, key, fmt.Sprintf(format, args...))
}

// text returns the string at key, "" where there is none.
func (t tomlTable) text(key string) string {
	v, ok := t.values[key]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		t.errorf(key, "is %s, and should be a string", describe(v))
	}
	return s
}

// needText is text for a key that must be there and not empty.
func (t tomlTable) needText(key string) string {
	v, ok := t.values[key]
	if s := t.text(key); s != "" {
		return s
	}
	if _, isText := v.(string); !ok || isText {
		t.errorf(key, "is missing or empty")
	}
	return ""
}

// table returns the table at key; ok is false where there is none.
func (t tomlTable) table(key string) (tomlTable, bool) {
	v, there := t.values[key]
	if !there {
		return tomlTable{}, false
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.errorf(key, "is %s, and should be a table", describe(v))
	}
	return tomlTable{values: m, at: t.at + key + ".", faults: t.faults}, ok
}

// tables returns the array of tables at key.
func (t tomlTable) tables(key string) []tomlTable {
	var list []tomlTable
	add := func(v any) {
		at := fmt.Sprintf("%s%s %d", t.at, key, len(list)+1)
		m, ok := v.(map[string]any)
		if !ok {
			t.faults.errorf("%s: is %s, and should be a table", at, describe(v))
		}
		list = append(list, tomlTable{values: m, at: at + ": ", faults: t.faults})
	}
	switch v := t.values[key].(type) {
	case nil:
	case []map[string]any: // what the parser makes of [[key]]
		for _, m := range v {
			add(m)
		}
	case []any: // and of key = [{…}]
		for _, m := range v {
			add(m)
		}
	default:
		t.errorf(key, "is %s, and should be an array of tables", describe(v))
	}
	return list
}

// array returns the array at key; ok is false where there is none.
func (t tomlTable) array(key string) (list []any, ok bool) {
	switch v := t.values[key].(type) {
	case nil:
		return nil, false
	case []any:
		return v, true
	default:
		t.errorf(key, "is %s, and should be an array", describe(v))
		return nil, false
	}
}

// texts returns the strings of the array at key; ok is false where there is no
// array.
func (t tomlTable) texts(key string) (list []string, ok bool) {
	values, ok := t.array(key)
	for i, v := range values {
		s, isText := v.(string)
		if !isText {
			t.errorf(key, "value %d: is %s, and should be a string", i+1, describe(v))
			continue
		}
		list = append(list, s)
	}
	return list, ok
}

// textTable returns the table of strings at key, nil where there is none.
func (t tomlTable) textTable(key string) map[string]string {
	sub, ok := t.table(key)
	if !ok {
		return nil
	}
	texts := make(map[string]string, len(sub.values))
	for _, k := range sortedKeys(sub.values) {
		s, ok := sub.values[k].(string)
		if !ok {
			sub.errorf(quotePath(k), "is %s, and should be a string", describe(sub.values[k]))
			continue
		}
		texts[k] = s
	}
	return texts
}

// describe says what a TOML value is, shortly and printably.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		return "the string " + quoteShort(v)
	case int64:
		return "the integer " + strconv.FormatInt(v, 10)
	case float64:
		return "the float " + strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "an array"
	}
	return "nothing"
}

// quoteShort quotes text from outside, and cuts it where it is long.
func quoteShort(s string) string { return errtext.Quoted(s) }
