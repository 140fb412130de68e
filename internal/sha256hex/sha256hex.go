// Package sha256hex is the one rule for a sha256 that is written as text. What
// keeps it is safe as a part of a path or URL.
package sha256hex

import (
	"crypto/sha256"
	"strings"
)

// Want says what is wanted, for errors.
const Want = "64 lower-case hex digits"

// Is reports whether s is 64 lower-case hex digits.
func Is(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}
