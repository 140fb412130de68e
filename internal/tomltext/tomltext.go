// Package tomltext writes pieces of TOML documents: what is written into a file
// that a digest depends on is a function of the value alone, in this version and
// every other. https://toml.io/en/v1.0.0
package tomltext

import (
	"fmt"
	"strings"
)

// Quote writes a basic string. What is not UTF-8 becomes U+FFFD.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Key writes a key: bare where it can be, else quoted.
func Key(s string) string {
	const bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if s == "" || strings.Trim(s, bare) != "" {
		return Quote(s)
	}
	return s
}
