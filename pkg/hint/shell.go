package hint

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is an argument of [With] that is part of the sentence, in our own words.
type Text string

// shell writes an argument so that a hint may be copied into a shell, whoever
// named what it says: numbers, errors and [Text] as they are, everything else
// as [Quote] does.
func shell(arg any) any {
	switch v := arg.(type) {
	case nil, Text, error:
		return arg
	case fmt.Stringer:
		return Quote(v.String())
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
		return Quote(v.String())
	}
	return arg
}

// Quote returns s as one word of a shell: as it is where that has no meaning of
// its own there, else in quotes.
func Quote(s string) string {
	plain, printable := s != "" && s[0] != '=', utf8.ValidString(s)
	for _, r := range s {
		plain = plain && (r >= utf8.RuneSelf || unicode.IsLetter(r) || unicode.IsDigit(r) ||
			strings.ContainsRune("@%+=:,./_-", r))
		printable = printable && unicode.IsPrint(r)
	}
	switch {
	case !printable:
		return ansiC(s)
	case plain:
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ansiC quotes what a terminal does not show, as bash and zsh read it.
func ansiC(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[n:]
	}
	return b.String() + "'"
}
