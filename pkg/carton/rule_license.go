package carton

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	licenseID  = regexp.MustCompile(`^[A-Za-z0-9.-]+\+?$`)
	exception  = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
	licenseRef = regexp.MustCompile(`^(?:DocumentRef-[A-Za-z0-9.-]+:)?LicenseRef-[A-Za-z0-9.-]+$`)
)

// CheckLicense wants an SPDX licence expression
// (https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/): ids with
// AND, OR, WITH, a + behind an id, and parentheses. Ids are checked for their form
// alone: SPDX's list has some 700 and grows with every release, so that any copy of
// it here would warn of licences that are right.
func CheckLicense(s string) error {
	if err := checkLicenseWords(strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(s))); err != nil {
		return fmt.Errorf("%s is not an SPDX expression: %w", quoteShort(s), err)
	}
	return nil
}

// checkLicenseWords reads words one after another. Whether AND or OR binds tighter
// makes no difference to whether it is an expression.
func checkLicenseWords(words []string) error {
	depth, due := 0, true // parentheses that are open, and whether a licence is due
	for i, w := range words {
		behindWith := i > 0 && words[i-1] == "WITH"
		switch {
		case due && behindWith && exception.MatchString(w) && !isOperator(w):
			due = false
		case due && behindWith:
			return fmt.Errorf("%s behind WITH is not an exception's id", quoteShort(w))
		case due && w == "(":
			depth++
		case due && !isLicense(w):
			return fmt.Errorf("%s is not a licence's id", quoteShort(w))
		case due:
			due = false
		case w == "AND", w == "OR", w == "WITH" && i > 0 && isLicense(words[i-1]) && (i < 2 || words[i-2] != "WITH"):
			due = true
		case w == ")" && depth > 0:
			depth--
		default:
			return fmt.Errorf("%s stands where AND, OR or the end should be", quoteShort(w))
		}
	}
	switch {
	case due:
		return errors.New("ends where a licence should be")
	case depth > 0:
		return errors.New("a parenthesis is not closed")
	}
	return nil
}

// isLicense reports whether a word is an id, an id with a +, or a reference to a
// licence that SPDX has not listed.
func isLicense(w string) bool {
	return licenseRef.MatchString(w) || licenseID.MatchString(w) && !strings.HasPrefix(w, "LicenseRef-") &&
		!isOperator(w)
}

func isOperator(w string) bool { return w == "AND" || w == "OR" || w == "WITH" }
