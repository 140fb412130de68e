package tomltext_test

import (
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/carton-oci/carton-oci/internal/tomltext"
)

var texts = []struct{ text, quoted, key string }{
	{"", `""`, `""`},
	{"plain_KEY-1", `"plain_KEY-1"`, `plain_KEY-1`},
	{"a.b", `"a.b"`, `"a.b"`},
	{"ü", `"ü"`, `"ü"`},
	{"a\"b\\c", `"a\"b\\c"`, `"a\"b\\c"`},
	{"a\nb\x00\x7f", `"a\u000Ab\u0000\u007F"`, `"a\u000Ab\u0000\u007F"`},
	{"\u2028", "\"\u2028\"", "\"\u2028\""},
}

func TestQuoteAndKey(t *testing.T) {
	for _, c := range texts {
		if got := tomltext.Quote(c.text); got != c.quoted {
			t.Errorf("Quote(%q): got %s, want %s", c.text, got, c.quoted)
		}
		if got := tomltext.Key(c.text); got != c.key {
			t.Errorf("Key(%q): got %s, want %s", c.text, got, c.key)
		}
	}
	if got, want := tomltext.Quote("a\xffb"), "\"a\ufffdb\""; got != want {
		t.Errorf("no UTF-8: got %q, want %q", got, want)
	}
}

var manyLines = []struct{ text, written string }{
	{"one", `"one"`},
	{"a\nb", "'''\na\nb'''"},
	{"\na\n\tb \"c\" \\n\n", "'''\n\na\n\tb \"c\" \\n\n'''"},
	{"a'''\nb", "\"\"\"\na'''\nb\"\"\""},
	{"a\nb'", "\"\"\"\na\nb'\"\"\""},
	{"a\r\n\"\"\"\\u000A\\\n\x7f\t", "\"\"\"\na\\u000D\n\\\"\\\"\\\"\\\\u000A\\\\\n\\u007F\\u0009\"\"\""},
}

func TestLines(t *testing.T) {
	for _, c := range manyLines {
		got := tomltext.Lines(c.text)
		if got != c.written {
			t.Errorf("%q: got %q, want %q", c.text, got, c.written)
		}
		var doc map[string]string
		if _, err := toml.Decode("v = "+got+"\nw = 'end'\n", &doc); err != nil || doc["v"] != c.text || doc["w"] != "end" {
			t.Errorf("%q: got %q, %v", c.text, doc, err)
		}
	}
}

func TestValue(t *testing.T) {
	for want, v := range map[string]any{`"a"`: "a", "true": true, "-4": int64(-4), "0.5": 0.5, "1e+30": 1e30, "2.0": 2.0} {
		if got, err := tomltext.Value(v); err != nil || got != want {
			t.Errorf("%v: got %s, %v, want %s", v, got, err, want)
		}
	}
	if got, err := tomltext.Value([]int{1}); err == nil {
		t.Errorf("a list: got %s", got)
	}
}

// Every other program must read what was meant.
func TestParsersReadItBack(t *testing.T) {
	for _, c := range texts {
		var doc map[string]string
		if _, err := toml.Decode(tomltext.Key(c.text)+" = "+tomltext.Quote(c.text), &doc); err != nil || doc[c.text] != c.text || len(doc) != 1 {
			t.Errorf("%q: got %q, %v", c.text, doc, err)
		}
	}
}
