package errtext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/secret"
)

const (
	maxWord = 256 // bytes of a word that [Short] and [Quoted] show
	maxText = 200 // characters that [OneLine] shows
)

// Quote returns a name from outside as it is where a terminal shows it so, else
// quoted; and without the secrets that somebody may have repeated in it.
func Quote(name string) string {
	name = secret.Strike(name)
	if IsPrintable(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// Short is Quote for a word that may have any length, none included: of a long
// one it returns the beginning.
func Short(word string) string {
	start, more := beginning(word)
	if start == "" {
		return `""`
	}
	return Quote(start) + more
}

// Quoted is Short in quotes, whatever the word.
func Quoted(word string) string {
	start, more := beginning(word)
	return strconv.Quote(start) + more
}

// beginning returns what is shown of a word, and "…" where that is not all. A
// secret is struck before anything is cut: a part of it is not known.
func beginning(word string) (start, more string) {
	word = secret.Strike(word)
	if len(word) <= maxWord {
		return word, ""
	}
	end := maxWord
	for end > maxWord-utf8.UTFMax && !utf8.RuneStart(word[end]) {
		end--
	}
	return word[:end], "…"
}

// OneLine returns the beginning of what a server sent as one line of printable
// characters, so that it can neither move a terminal's cursor nor forge a line of
// a log, and without the secrets that the server may repeat.
func OneLine(text string) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range secret.Strike(text) {
		if !unicode.IsPrint(r) || unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			n, space = n+1, false
		}
		if n >= maxText {
			return b.String() + "…"
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// IsPrintable reports whether a terminal shows s as it is.
func IsPrintable(s string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable)
}
