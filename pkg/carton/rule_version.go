package carton

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	versionNumber     = `(0|[1-9][0-9]*)`
	versionPreRelease = `(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)` // a number has no leading zero
	versionBuild      = `[0-9A-Za-z-]+`
)

// comparator is an operator and one to three numbers, of which the second and third
// may be a wildcard, and no number follows one. Behind three numbers there may be a
// pre-release and a build.
var comparator = regexp.MustCompile(
	`^(?:>=|<=|[=><~^])? *` + versionNumber +
		`(?:\.[*xX](?:\.[*xX])?|\.` + versionNumber + `(?:\.[*xX]|\.` + versionNumber +
		`(?:-` + versionPreRelease + `(?:\.` + versionPreRelease + `)*)?` +
		`(?:\+` + versionBuild + `(?:\.` + versionBuild + `)*)?)?)?$`)

// CheckVersionReq checks a version requirement as VersionReq::parse of Rust's
// semver crate 1.x does, which is what the reference implementation uses
// (https://docs.rs/semver/1.0.16/semver/struct.VersionReq.html): "*", x or X, or up
// to 32 comparators with commas between them. Numbers have 64 bits.
func CheckVersionReq(s string) error {
	const most = 32
	parts := strings.Split(s, ",")
	if len(parts) > most {
		return fmt.Errorf("holds more than %d versions", most)
	}
	if w := strings.Trim(s, " "); w == "*" || w == "x" || w == "X" {
		return nil
	}
	for _, part := range parts {
		numbers := comparator.FindStringSubmatch(strings.Trim(part, " "))
		if numbers == nil {
			return fmt.Errorf("%s is not a version requirement, such as =2.0.1 or >=1.0, <2.0", quoteShort(s))
		}
		for _, n := range numbers[1:] {
			if _, err := strconv.ParseUint(n, 10, 64); n != "" && err != nil {
				return fmt.Errorf("%s is not a version requirement: a number is over 64 bits", quoteShort(s))
			}
		}
	}
	return nil
}
