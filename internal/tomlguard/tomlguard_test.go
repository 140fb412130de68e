package tomlguard_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/carton-oci/carton-oci/internal/tomlguard"
)

const most = 10

func TestDocumentsAtTheLimitPass(t *testing.T) {
	for name, doc := range map[string]string{
		"empty":            "",
		"arrays":           "a = " + strings.Repeat("[", most) + strings.Repeat("]", most),
		"tables":           "a = " + strings.Repeat("{x = ", most) + "1" + strings.Repeat("}", most),
		"dotted key":       "a" + strings.Repeat(".a", most) + " = 1",
		"header":           "[a" + strings.Repeat(".a", most-1) + "]\nb = 1",
		"array of tables":  "[[a" + strings.Repeat(".a", most-2) + "]]\nb = 1\n",
		"many of them":     strings.Repeat("[[a]]\nb.c = [[1], [2.5, {d = 1.5}]]\n", 1000),
		"long array":       "a = [" + strings.Repeat("1.5, ", 1000) + "]",
		"brackets in text": `a = "` + strings.Repeat("[", 100) + `"` + "\nb = '" + strings.Repeat("{", 100) + "'",
		"escaped quote":    `a = "\"` + strings.Repeat("[", 100) + `\\"`,
		"many lines":       "a = \"\"\"\n" + strings.Repeat("[.\n", 100) + "\\\"\"\"\"\"\"\nb = '''" + strings.Repeat("{", 100) + "''''",
		"quoted keys":      `"a.b.c.d.e.f.g.h.i.j.k.l.m" = 1`,
		"comment":          "a = [ # " + strings.Repeat("[", 100) + "\n]",
		"comment last":     "# " + strings.Repeat("[", 100),
		"array over lines": "a = [\n[1, 2],\n[3, 4],\n]\n[b]\nc = 1.5",
	} {
		if err := tomlguard.Check([]byte(doc), most, math.MaxInt); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var v map[string]any
		if _, err := toml.Decode(doc, &v); err != nil {
			t.Errorf("%s is no TOML: %v", name, err)
		}
	}
}

func TestDeeperDocumentsDoNot(t *testing.T) {
	for name, doc := range map[string]string{
		"arrays":               "a = " + strings.Repeat("[", most+1),
		"arrays over lines":    "a = " + strings.Repeat("[\n", most+1),
		"ten thousand":         "a = " + strings.Repeat("[", 10_000),
		"tables":               "a = " + strings.Repeat("{x=", most+1),
		"dotted key":           "a" + strings.Repeat(".a", most+1) + " = 1",
		"quoted dotted key":    `"a"` + strings.Repeat(`."a"`, most+1) + " = 1",
		"header":               "[a" + strings.Repeat(".a", most+1) + "]",
		"array of tables":      "[[a" + strings.Repeat(".a", most+1) + "]]",
		"header and key":       "[a.a.a.a.a.a]\nb.b.b.b.b.b = 1",
		"key and table":        "a.a.a.a.a = {b.b.b = {c.c.c.c = 1}}",
		"after a string":       `a = "x" ` + strings.Repeat("[", most+1),
		"after many lines":     "a = \"\"\"x\"\"\"\"\"\nb = " + strings.Repeat("[", most+1),
		"after a comment":      "# x\na = " + strings.Repeat("[", most+1),
		"after an open string": "a = \"x\nb = " + strings.Repeat("[", most+1),
	} {
		if err := tomlguard.Check([]byte(doc), most, math.MaxInt); !errors.Is(err, tomlguard.ErrNesting) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestErrorNamesTheLine(t *testing.T) {
	doc := "a = 1\nb = '''\n\n'''\nc = " + strings.Repeat("[", 11)
	err := tomlguard.Check([]byte(doc), most, math.MaxInt)
	if err == nil || !strings.HasPrefix(err.Error(), "line 5: ") {
		t.Errorf("got %v, want line 5", err)
	}
}

// FuzzCheck: what passes can be parsed, and lies no deeper than allowed.
func FuzzCheck(f *testing.F) {
	f.Add("a = [[[[{b.c = 1}]]]]\n[x.y]\n[[z.\"q\"]]\ns = '''a''''\n# c")
	f.Add("a = \"\\\"\" # [\nb=\"\"\"\"\"\"\"\"")
	f.Fuzz(func(t *testing.T, doc string) {
		if tomlguard.Check([]byte(doc), most, math.MaxInt) != nil {
			return
		}
		var v map[string]any
		if _, err := toml.Decode(doc, &v); err == nil && depth(v) > most+2 {
			t.Errorf("a value lies %d deep", depth(v))
		}
	})
}

// depth counts the levels below a table.
func depth(v any) int {
	d := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			d = max(d, 1+depth(e))
		}
	case []map[string]any:
		for _, e := range v {
			d = max(d, 1+depth(e))
		}
	case []any:
		for _, e := range v {
			d = max(d, 1+depth(e))
		}
	}
	return d
}
