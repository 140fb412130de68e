package pmf_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
)

// withMetadata is the example with another document.
func withMetadata(text string) fstest.MapFS {
	fsys := exampleTree()
	fsys["metadata.yaml"] = &fstest.MapFile{Data: []byte(text)}
	return fsys
}

// PyYAML, which writes these documents, reads YAML 1.1: some plain scalars mean
// something else than in YAML 1.2.
func TestScalarsAreReadAsPyYAMLReadsThem(t *testing.T) {
	text := string(exampleTree()["metadata.yaml"].Data)
	for _, c := range []struct{ old, new, wantRule string }{
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: 12345e6", ""},  // a float in 1.2, a string in 1.1
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: !!str 12", ""}, // says what it is
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: '12'", ""},     // and so do quotes
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: 1:30", "type"}, // 90, in base 60
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: yes", "type"},  // true
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: 2019-03-13", "type"},
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: 1_000", "type"},
		{"id: 3d6acb1fce4469ee1559ba16e02f922f", "id: ~", "type"},
		{"latest_epoch: 12", "latest_epoch: 0x_C", ""},
		{"latest_epoch: 12", "latest_epoch: 014", ""}, // octal
		{"latest_epoch: 12", "latest_epoch: 0b1100", ""},
		{"latest_epoch: 12", "latest_epoch: +12", ""},
		{"latest_epoch: 12", "latest_epoch: 0:12", "type"}, // base 60 begins with 1 to 9
		{"latest_epoch: 12", "latest_epoch: 1:12", ""},
		{"latest_epoch: 12", "latest_epoch: 12345678901234567890", "type"},
		{"latest: 12", "latest: 014", ""},
		{"latest_time: 1552481973.357268", "latest_time: 1_552_481_973.5", ""},
		{"latest_time: 1552481973.357268", "latest_time: 1.6e+9", ""},
		{"latest_time: 1552481973.357268", "latest_time: 1.6e9", "type"}, // no sign: a string
		{"latest_time: 1552481973.357268", "latest_time: 0x7FFFFFFF", ""},
		{"latest_time: 1552481973.357268", "latest_time: 9999999:00:00.5", ""},
		{"latest_time: 1552481973.357268", "latest_time: .inf", "type"},
		{"name: imagenet", "name: null", ""},
		{"name: model_name", "name:", ""},
	} {
		changed := strings.Replace(text, c.old, c.new, 1)
		if changed == text {
			t.Fatalf("%s is not in the example", c.old)
		}
		rules := ""
		for _, v := range violations(t, withMetadata(changed), pmf.Options{}) {
			rules += string(v.Rule)
		}
		if rules != c.wantRule {
			t.Errorf("%s: got %q, want %q", c.new, rules, c.wantRule)
		}
	}
}

func TestAliasesAreFollowedAndNotExpanded(t *testing.T) {
	text := string(exampleTree()["metadata.yaml"].Data)
	text = strings.Replace(text, "start_epoch: 0", "start_epoch: &zero 0", 1)
	text = strings.Replace(text, "            1:\n                epoch: 1\n", "            1:\n                epoch: *zero\n", 1)
	// An alias may only come after its anchor.
	if found := violations(t, withMetadata(text), pmf.Options{}); len(found) != 1 || found[0].Rule != pmf.RuleSyntax {
		t.Errorf("an alias before its anchor: got %v", found)
	}
	text = string(exampleTree()["metadata.yaml"].Data)
	text = strings.NewReplacer("latest: 12", "latest: &n 12", "latest_epoch: 12", "latest_epoch: *n").Replace(text)
	m, err := pmf.Read(withMetadata(text), pmf.Options{})
	if err != nil || *m.Training.LatestEpoch != 12 {
		t.Errorf("got %+v, %v", m, err)
	}
	// Nine times nine times … lists: 9^30 values, were they expanded.
	bomb := "x0: &x0 [a, a, a, a, a, a, a, a, a]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("x%d: &x%d [%s*x%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*x%d, ", i), 8), i)
	}
	m, err = pmf.Read(withMetadata(bomb+text), pmf.Options{})
	if err != nil || len(m.Warnings) != 31 {
		t.Errorf("a bomb among unknown keys: got %v, %v", m, err)
	}
	bombed := strings.Replace(text, "        name: faster_rcnn", "        name: *x30", 1)
	if found := violations(t, withMetadata(bomb+bombed), pmf.Options{}); len(found) != 1 || found[0].Rule != pmf.RuleType {
		t.Errorf("a bomb as a name: got %v", found)
	}
	loop := "model: &m {model: *m}\nformat: *m\n"
	if found := violations(t, withMetadata(loop), pmf.Options{}); len(found) == 0 {
		t.Error("an anchor that holds itself: want violations")
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	fsys := withMetadata(exampleText + "#" + strings.Repeat("x", pmf.MaxMetadataBytes))
	found := violations(t, fsys, pmf.Options{})
	if len(found) != 1 || found[0].Rule != pmf.RuleSize {
		t.Errorf("got %v, want %s", found, pmf.RuleSize)
	}
	for name, text := range map[string]string{
		"deep":    strings.Repeat("[", pmf.MaxMetadataBytes),
		"deeper":  strings.Repeat("{a: ", pmf.MaxMetadataBytes/4),
		"stairs":  stairs(1400),
		"many":    "[" + strings.Repeat("a,", pmf.MaxMetadataBytes/2-2) + "]",
		"utf-16":  "\xff\xfef\x00o\x00",
		"control": "format: \x00\n",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := pmf.Read(withMetadata(text), pmf.Options{})
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: want an error", name)
		}
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 512 {
			t.Errorf("%s: %d MiB were allocated", name, grown)
		}
	}
}

// stairs nests mappings by indentation.
func stairs(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// Whatever the bytes, Read ends, and what it accepts it accepts again.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(exampleText))
	f.Add(exampleTree()["metadata.yaml"].Data)
	for _, dir := range []string{"refused", "warned"} {
		for _, c := range readCases(f, dir) {
			if doc := c.fsys["metadata.yaml"]; doc != nil {
				f.Add(doc.Data)
			}
		}
	}
	f.Add([]byte("a: &a {<<: *a}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		fsys := withMetadata(string(raw))
		loose, err := pmf.Read(fsys, pmf.Options{})
		if _, strict := pmf.Read(fsys, pmf.Options{Strict: true}); err != nil && strict == nil {
			t.Errorf("refused (%v), but strict accepts it", err)
		}
		if err != nil {
			return
		}
		if loose.ID == "" && loose.Producer.Name == "" {
			t.Error("accepted, and nothing was read")
		}
		for _, s := range loose.Sums() {
			if fsys[s.Path] == nil {
				t.Errorf("the sum of %s, which is not there", s.Path)
			}
		}
	})
}
