package carton

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// CheckVersionReq checks a version requirement as VersionReq::parse of Rust's
// semver crate 1.x does, which is what the reference implementation uses
// (https://docs.rs/semver/1.0.16/semver/struct.VersionReq.html): "*", or up to
// 32 comparators with commas between them. A comparator is an operator (=, >,
// >=, <, <=, ~, ^ or none) and one to three numbers, of which the second and
// third may be *, x or X, and with three of them a pre-release and a build.
func CheckVersionReq(s string) error {
	const most = 32
	rest := strings.TrimLeft(s, " ")
	if after, ok := cutWildcard(rest); ok {
		if strings.TrimLeft(after, " ") != "" {
			return fmt.Errorf("got %s, want nothing else where the version is %s", quoteShort(s), rest[:1])
		}
		return nil
	}
	for n := 1; ; n++ {
		var err error
		if rest, err = cutComparator(rest); err != nil {
			return fmt.Errorf("%s is not a version requirement: %w", quoteShort(s), err)
		}
		if rest == "" {
			return nil
		}
		if rest[0] != ',' {
			return fmt.Errorf("%s is not a version requirement: want a comma between versions", quoteShort(s))
		}
		if n == most {
			return fmt.Errorf("holds more than %d versions", most)
		}
		rest = strings.TrimLeft(rest[1:], " ")
	}
}

// cutComparator takes one comparator off s, and spaces behind it.
func cutComparator(s string) (string, error) {
	for _, op := range []string{">=", "<=", "=", ">", "<", "~", "^"} {
		if after, ok := strings.CutPrefix(s, op); ok {
			s = after
			break
		}
	}
	s, err := cutNumber(strings.TrimLeft(s, " "))
	if err != nil {
		return "", err
	}
	wild, numbers := false, 1
	for numbers < 3 && strings.HasPrefix(s, ".") {
		after, ok := cutWildcard(s[1:])
		switch {
		case ok:
			wild, s = true, after
		case wild:
			return "", errors.New("a number follows a wildcard")
		default:
			if s, err = cutNumber(s[1:]); err != nil {
				return "", err
			}
		}
		numbers++
	}
	if numbers == 3 && !wild {
		if s, err = cutIdentifiers(s, "-", true); err != nil {
			return "", err
		}
		if s, err = cutIdentifiers(s, "+", false); err != nil {
			return "", err
		}
	}
	return strings.TrimLeft(s, " "), nil
}

// cutWildcard takes *, x or X off s.
func cutWildcard(s string) (string, bool) {
	if s != "" && strings.ContainsRune("*xX", rune(s[0])) {
		return s[1:], true
	}
	return s, false
}

// cutNumber takes a decimal number of 64 bits without leading zeros off s.
func cutNumber(s string) (string, error) {
	n, value := 0, uint64(0)
	for ; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		digit := uint64(s[n] - '0')
		if n > 0 && value == 0 {
			return "", errors.New("a number has a leading zero")
		}
		if value > (math.MaxUint64-digit)/10 {
			return "", errors.New("a number is over 64 bits")
		}
		value = value*10 + digit
	}
	switch {
	case n > 0:
		return s[n:], nil
	case s == "":
		return "", errors.New("ends where a number should be")
	}
	return "", fmt.Errorf("got %q where a number should be", []rune(s)[0])
}

// cutIdentifiers takes a pre-release or build off s, where s begins with the
// mark of one: identifiers of letters, digits and "-", with dots between them.
// Numbers of a pre-release have no leading zeros.
func cutIdentifiers(s, mark string, pre bool) (string, error) {
	s, ok := strings.CutPrefix(s, mark)
	if !ok {
		return s, nil
	}
	for {
		n := 0
		for n < len(s) && (isAlnum(s[n]) || s[n] == '-') {
			n++
		}
		id := s[:n]
		switch {
		case n == 0:
			return "", fmt.Errorf("an identifier behind %q is empty", mark)
		case pre && n > 1 && id[0] == '0' && strings.Trim(id, "0123456789") == "":
			return "", errors.New("a number has a leading zero")
		}
		if s = s[n:]; !strings.HasPrefix(s, ".") {
			return s, nil
		}
		s = s[1:]
	}
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
