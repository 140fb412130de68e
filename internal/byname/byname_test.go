package byname_test

import (
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/internal/byname"
)

// What every name gives is tested where it reaches a digest, in pkg/convert; here,
// which names are known.
func TestKnownNames(t *testing.T) {
	for name, want := range map[string]struct {
		category byname.Category
		named    bool
	}{
		"a.BIN": {byname.Weight, true}, "a": {byname.Weight, false}, "": {byname.Weight, false},
		"RECORD": {byname.Config, true}, "records": {byname.Weight, false}, "License.json": {byname.Doc, true},
		"x.Py": {byname.Code, true}, "x.py.K": {byname.Weight, false},
	} {
		if c, named := byname.Of(name); c != want.category || named != want.named {
			t.Errorf("%q: got %s, %v, want %s, %v", name, c, named, want.category, want.named)
		}
	}
}

// The rules are of categories that there are, and written as they are compared.
func TestRulesAreInLowerCase(t *testing.T) {
	for _, r := range byname.Rules {
		if !slices.Contains(byname.All, r.Category) {
			t.Errorf("%s is no category", r.Category)
		}
		for _, s := range slices.Concat(r.Names, r.Prefixes, r.Suffixes) {
			for _, c := range s {
				if c >= 'A' && c <= 'Z' || c > 127 {
					t.Errorf("%q fits no name", s)
				}
			}
		}
	}
}
