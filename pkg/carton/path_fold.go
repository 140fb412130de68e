package carton

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// folding maps names that some file system takes for one to one string: by
// Unicode's full case folding between two normalisations. It remembers the runes
// that it has met, because to look them up takes ten times as long as everything
// else that is done with a name.
type folding struct {
	runes map[rune]string // decomposed and folded
	buf   []byte
}

// ypogegrammeni is the one rune that changes its combining class when it is
// folded: text that holds it must be put in order before.
const ypogegrammeni = '\u0345'

// path folds a path. No rune changes across a slash.
func (f *folding) path(p string) string {
	if isASCII(p) { // needs no normalisation
		return strings.ToLower(p)
	}
	f.buf = f.buf[:0]
	for _, r := range p {
		switch {
		case 'A' <= r && r <= 'Z':
			f.buf = append(f.buf, byte(r)+'a'-'A')
		case r < utf8.RuneSelf:
			f.buf = append(f.buf, byte(r))
		default:
			folded := f.rune(r)
			if folded == "" {
				return norm.NFD.String(cases.Fold().String(norm.NFD.String(p)))
			}
			f.buf = append(f.buf, folded...)
		}
	}
	return norm.NFD.String(string(f.buf))
}

// rune decomposes and folds a rune; "" where it can't be folded by itself.
func (f *folding) rune(r rune) string {
	folded, ok := f.runes[r]
	if !ok {
		if f.runes == nil {
			f.runes = map[rune]string{}
		}
		if decomposed := norm.NFD.String(string(r)); !strings.ContainsRune(decomposed, ypogegrammeni) {
			folded = cases.Fold().String(decomposed)
		}
		f.runes[r] = folded
	}
	return folded
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
