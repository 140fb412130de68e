package carton

import (
	"errors"
	"fmt"
	"strings"
)

// checkLicense wants an SPDX licence expression
// (https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/): ids with
// AND, OR, WITH, a + behind an id, and parentheses. Ids are checked for their form
// alone: SPDX's list has some 700 and grows with every release, so that any copy of
// it here would warn of licences that are right.
func checkLicense(s string) error {
	p := licenseParser{words: licenseWords(s)}
	if err := p.expression(0); err != nil {
		return fmt.Errorf("%s is not an SPDX expression: %w", quoteShort(s), err)
	}
	if p.word() != "" {
		return fmt.Errorf("%s is not an SPDX expression: got %s, want AND, OR or the end", quoteShort(s), quoteShort(p.word()))
	}
	return nil
}

// licenseWords cuts an expression at spaces and parentheses.
func licenseWords(s string) []string {
	s = strings.ReplaceAll(s, "(", " ( ")
	return strings.Fields(strings.ReplaceAll(s, ")", " ) "))
}

type licenseParser struct{ words []string }

func (p *licenseParser) word() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

// expression parses terms with AND or OR between them. Which binds tighter
// makes no difference to whether it is one.
func (p *licenseParser) expression(depth int) error {
	for {
		if err := p.term(depth); err != nil {
			return err
		}
		if w := p.word(); w != "AND" && w != "OR" {
			return nil
		}
		p.words = p.words[1:]
	}
}

func (p *licenseParser) term(depth int) error {
	w := p.word()
	if w == "" {
		return errors.New("ends where a licence should be")
	}
	p.words = p.words[1:]
	if w == "(" {
		if depth == MaxNesting {
			return fmt.Errorf("parentheses nest deeper than %d", MaxNesting)
		}
		if err := p.expression(depth + 1); err != nil {
			return err
		}
		if p.word() != ")" {
			return errors.New("a parenthesis is not closed")
		}
		p.words = p.words[1:]
		return nil
	}
	if err := checkLicenseID(w); err != nil {
		return err
	}
	if p.word() != "WITH" {
		return nil
	}
	p.words = p.words[1:]
	exception := p.word()
	if !isLicenseID(exception) {
		return fmt.Errorf("got %s, want an exception after WITH", quoteShort(exception))
	}
	p.words = p.words[1:]
	return nil
}

// checkLicenseID wants an id, an id with a +, or a reference to a licence that
// SPDX has not listed: [DocumentRef-ID:]LicenseRef-ID.
func checkLicenseID(w string) error {
	ref := w
	if doc, after, ok := strings.Cut(w, ":"); ok {
		id, isDoc := strings.CutPrefix(doc, "DocumentRef-")
		if !isDoc || !isLicenseID(id) {
			return fmt.Errorf("got %s, want DocumentRef-ID:LicenseRef-ID", quoteShort(w))
		}
		ref = after
	}
	if id, ok := strings.CutPrefix(ref, "LicenseRef-"); ok && isLicenseID(id) {
		return nil
	}
	if !isLicenseID(strings.TrimSuffix(w, "+")) || strings.HasPrefix(w, "LicenseRef-") {
		return fmt.Errorf("got %s, want a licence id", quoteShort(w))
	}
	return nil
}

func isLicenseID(s string) bool {
	for _, c := range []byte(s) {
		if !isAlnum(c) && c != '-' && c != '.' {
			return false
		}
	}
	return s != ""
}
