package carton

import (
	"errors"
	"fmt"
	"strings"
)

// licenseIDs are the licence ids that models and their code come with, in
// lower case. SPDX's own list has some 700 ids and grows with every release; a
// licence that is right but rare costs a warning here, and nothing else.
var licenseIDs = wordSet(`
	0bsd afl-3.0 agpl-3.0 agpl-3.0-only agpl-3.0-or-later apache-1.1 apache-2.0
	apsl-2.0 artistic-2.0 blueoak-1.0.0 bsd-1-clause bsd-2-clause
	bsd-2-clause-patent bsd-3-clause bsd-3-clause-clear bsd-4-clause bsl-1.0
	busl-1.1 bzip2-1.0.6 c-uda-1.0 cc-by-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0
	cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0
	cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0
	cc-by-sa-3.0 cc-by-sa-4.0 cc-pddc cc0-1.0 cddl-1.0 cddl-1.1 cdla-permissive-1.0
	cdla-permissive-2.0 cdla-sharing-1.0 cecill-2.1 cecill-b cecill-c cpal-1.0
	cpl-1.0 ecl-2.0 efl-2.0 elastic-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1
	eupl-1.2 ftl gfdl-1.3-only gfdl-1.3-or-later gpl-1.0-only gpl-1.0-or-later
	gpl-2.0 gpl-2.0-only gpl-2.0-or-later gpl-3.0 gpl-3.0-only gpl-3.0-or-later
	hpnd icu ijg intel isc jpl-image lgpl-2.0-only lgpl-2.0-or-later lgpl-2.1
	lgpl-2.1-only lgpl-2.1-or-later lgpl-3.0 lgpl-3.0-only lgpl-3.0-or-later
	lgpllr libpng-2.0 lppl-1.3c mit mit-0 mit-cmu mit-modern-variant mpl-1.1
	mpl-2.0 mpl-2.0-no-copyleft-exception ms-pl ms-rl mulanpsl-1.0 mulanpsl-2.0
	ncsa nist-pd nlod-2.0 npl-1.1 o-uda-1.0 odbl-1.0 odc-by-1.0 ofl-1.0 ofl-1.1
	ogl-uk-3.0 oldap-2.8 openssl osl-3.0 parity-7.0.0 pddl-1.0 php-3.01
	polyform-noncommercial-1.0.0 polyform-small-business-1.0.0 postgresql psf-2.0
	python-2.0 qpl-1.0 ruby sgi-b-2.0 sspl-1.0 tcl unicode-3.0 unicode-dfs-2016
	unlicense upl-1.0 vim w3c wtfpl x11 xfree86-1.1 zlib zpl-2.1`)

// checkLicense wants an SPDX licence expression
// (https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/): ids with
// AND, OR, WITH, a + behind an id, and parentheses. Ids are compared without
// regard to case, as SPDX does; exceptions are only checked for their form.
func checkLicense(s string) error {
	p := licenseParser{words: licenseWords(s)}
	if err := p.expression(0); err != nil {
		return fmt.Errorf("%s is no SPDX expression: %w", quoteShort(s), err)
	}
	if p.word() != "" {
		return fmt.Errorf("%s is no SPDX expression: got %s, want AND, OR or the end", quoteShort(s), quoteShort(p.word()))
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
	id := strings.TrimSuffix(w, "+")
	switch {
	case !isLicenseID(id):
		return fmt.Errorf("got %s, want a licence id", quoteShort(w))
	case !licenseIDs[strings.ToLower(id)]:
		return fmt.Errorf("%s is no licence id that is known here, nor LicenseRef-…", quoteShort(w))
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
