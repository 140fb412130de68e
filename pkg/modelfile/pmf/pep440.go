package pmf

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// versionPEP440 is the one format of versions that the library registers.
const versionPEP440 = "py_pa"

// pep440 is the public regular expression of
// https://peps.python.org/pep-0440/#appendix-b-parsing-version-strings-with-regular-expressions
// without regard to case and without the white space that it accepts around.
var pep440 = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^v?(?:(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*` + // epoch, release
		`(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?` + // pre-release
		`(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?` + // post release
		`(?:[-_.]?dev[-_.]?[0-9]*)?)` + // development release
		`(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$`) // local version
})

// isPEP440 reports whether v is a version. Its letters are those of ASCII, where a
// regular expression without regard to case takes ſ for s.
func isPEP440(v string) bool {
	return pep440().MatchString(v) && strings.IndexFunc(v, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
