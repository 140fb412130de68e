package carton

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// TestFoldingIsUnicodes: rune by rune, names are folded as x/text folds them
// whole, combining marks that have to be put in order included.
func TestFoldingIsUnicodes(t *testing.T) {
	testenv.Heavy(t)
	whole := func(p string) string { return norm.NFD.String(cases.Fold().String(norm.NFD.String(p))) }
	var f folding
	for r := rune(utf8.RuneSelf); r < 0x20000; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if got, want := f.path("A"+string(r)), whole("A"+string(r)); got != want {
			t.Errorf("%U: got %q, want %q", r, got, want)
		}
	}
	for _, p := range []string{
		"\u03b1\u0345\u0301", "\u03b1\u0301\u0345", "\u1f80\u0301", "a\u0323\u0302", "a\u0302\u0323", "stra\u00dfe", "STRASSE", "\uac00", "\u1100\u1161",
	} {
		if got, want := f.path(p), whole(p); got != want {
			t.Errorf("%q: got %q, want %q", p, got, want)
		}
	}
}
