package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// oneLine makes what we say fit for one line of a terminal: joined errors become
// clauses, anything unprintable its escape.
func oneLine(text string) string {
	return escape(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "; "))
}

// escape makes a value fit for one line of a terminal: what it does not show is
// written as its escape, line ends too.
func escape(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if r == unicode.ReplacementChar && !strings.HasPrefix(text[i:], "\uFFFD") {
			fmt.Fprintf(&b, `\x%02x`, text[i])
		} else if !unicode.IsPrint(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapeJSON escapes in JSON what a terminal would not show but do. Outside of
// strings there is nothing of it.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
