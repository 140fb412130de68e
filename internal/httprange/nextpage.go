package httprange

import (
	"net/http"
	"net/url"
	"strings"
)

// NextPage returns the query of the link to the next page of a list, false for none. No
// answer leads to another host, nor to another path, by what it says of those.
// https://www.rfc-editor.org/rfc/rfc8288#section-3
func NextPage(header http.Header) (query string, ok bool) {
	for _, links := range header.Values("Link") {
		for links != "" {
			_, rest, found := strings.Cut(links, "<")
			target, rest, closed := strings.Cut(rest, ">")
			if !found || !closed {
				break
			}
			params := rest
			if i := strings.IndexByte(rest, '<'); i >= 0 {
				params = rest[:i]
			}
			links = rest
			if !isNext(params) {
				continue
			}
			if u, err := url.Parse(target); err == nil {
				return u.RawQuery, true
			}
		}
	}
	return "", false
}

// isNext reports whether the parameters of a link say that it is to the next page.
func isNext(params string) bool {
	for param := range strings.FieldsFuncSeq(params, func(c rune) bool { return c == ';' || c == ',' }) {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(strings.TrimSpace(name), "rel") &&
			strings.EqualFold(strings.Trim(strings.TrimSpace(value), `"`), "next") {
			return true
		}
	}
	return false
}
