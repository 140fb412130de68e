package pack_test

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

func TestFrontMatter(t *testing.T) {
	for text, want := range map[string][2]string{
		"---\nlicense: apache-2.0\nmodel_name: Tiny\n---\n# A model\n":               {"Apache-2.0", "Tiny"},
		"---\r\nlicense: 'MIT'\r\ntags:\r\n- a\r\nname: N\r\n---\r\n":                {"MIT", "N"},
		"---\nlicense: other\nlicense_name: own\n---\n":                              {},
		"---\nlicense: gpl-3.0\n---\n":                                               {}, // only, or later?
		"---\nlicense: [mit]\nmodel_name: {a: b}\n---\n":                             {},
		"---\nlicense: mit\nlicense: isc\n---\n":                                     {},
		"---\nlicense: mit\n":                                                        {}, // has no end
		"# A model\n---\nlicense: mit\n---\n":                                        {},
		"---\nlicense: mit: x\n---\n":                                                {}, // no YAML
		"---\n---\n":                                                                 {},
		"---\na: &a [x, x]\nb: &b [*a, *a]\nlicense: *b\nmodel_name: &n Tiny\n---\n": {"", "Tiny"},
		"---\nlicense: mit\n" + strings.Repeat("#", 70_000) + "\n---\n":              {},
		"---\nx: " + strings.Repeat("[", 20_000) + "\nlicense: mit\n---\n":           {},
		"---\nmodel_name: 1\n---\n":                                                  {},
	} {
		c := open(t, noop, tree(t, map[string]string{"README.md": text, "a": "x"}))
		if got := [2]string{c.Info.License, c.Info.ModelName}; got != want {
			t.Errorf("%.60q: got %q, want %q", text, got, want)
		}
	}
	readme := map[string]string{"README.md": "---\nlicense: mit\nname: N\n---\n", "sub/README.md": "---\nname: M\n---\n"}
	c := open(t, pack.Options{Info: carton.Info{License: "ISC", ModelName: "mine", Runner: carton.Runner{Name: "noop"}}}, tree(t, readme))
	if c.Info.License != "ISC" || c.Info.ModelName != "mine" {
		t.Errorf("got %+v, want what was given", c.Info)
	}
	delete(readme, "README.md")
	if c := open(t, noop, tree(t, readme)); c.Info.ModelName != "" {
		t.Errorf("got the name %q of another file", c.Info.ModelName)
	}
}
