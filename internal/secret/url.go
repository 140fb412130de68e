package secret

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Hidden stands for what is not shown.
const Hidden = "…"

var (
	// What begins so was meant as a URL. One letter is a drive of Windows.
	schemeRE = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9+.-]+:/+|(?i:https?):)`)
	hostRE   = regexp.MustCompile(`^(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\.?|localhost|\[[0-9A-Fa-f:.]+\])$`)
	digestRE = regexp.MustCompile(`(?i:@sha[0-9]+):[0-9a-fA-F]*$`)
	hubRE    = regexp.MustCompile(`^(?i:hf):(?://)?`)
	pathRE   = regexp.MustCompile(`^(?:[./~\\]|[A-Za-z]:[/\\])`)
)

// Redact returns what somebody typed, a URL, a reference or a path, without what
// may be secret: user info, query and fragment. What names a path in this file
// system beyond doubt stays as it is.
func Redact(s string) string {
	shown, _ := split(s)
	return shown
}

// AddTyped makes known what [Redact] does not show of s, so that it is not shown by
// way of an error that quotes it.
func AddTyped(s string) {
	_, hidden := split(s)
	Add(hidden...)
}

// split returns what may be shown of s, and what may not.
func split(s string) (shown string, hidden []string) {
	if layout, ok := strings.CutPrefix(s, "oci:"); ok && !strings.HasPrefix(layout, "//") {
		if !strings.Contains(layout, ":") {
			return s, nil
		}
		shown, hidden = splitPlain(layout)
		return "oci:" + shown, hidden
	}
	if m := hubRE.FindString(s); m != "" && !strings.ContainsAny(s[len(m):], ":?#") {
		return s, nil // what follows the @ is a revision
	}
	scheme := schemeRE.FindString(s)
	if scheme == "" {
		return splitPlain(s)
	}
	rest := s[len(scheme):]
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, tail := rest[:end], rest[end:]
	at := strings.LastIndexByte(host, '@')
	host = host[at+1:]
	if strings.Contains(tail, "@") && !hostRE.MatchString(host) {
		i := strings.LastIndexByte(rest, '@') // a password may hold a slash
		return scheme + Hidden, append(passwords(rest[:i]), rest)
	}
	if at >= 0 {
		hidden = passwords(rest[:at])
		host = Hidden + "@" + host
	}
	tail, query := cutQuery(tail)
	return scheme + host + tail, append(hidden, query...)
}

// splitPlain is split for what has no scheme.
func splitPlain(s string) (shown string, hidden []string) {
	if pathRE.MatchString(s) {
		return s, nil
	}
	dgst := digestRE.FindString(s)
	s = strings.TrimSuffix(s, dgst)
	at := strings.LastIndexByte(s, '@')
	host, _, _ := strings.Cut(s, "/")
	if at >= 0 && (strings.Contains(s[:at], ":") || strings.Contains(host, "@")) {
		hidden = passwords(s[:at])
		s = Hidden + s[at:]
	}
	s, query := cutQuery(s)
	return s + dgst, append(hidden, query...)
}

// passwords returns user info, and the password of it.
func passwords(user string) []string {
	_, password, _ := strings.Cut(user, ":")
	return []string{user, password}
}

func cutQuery(s string) (shown string, hidden []string) {
	i := strings.IndexAny(s, "?#")
	if i < 0 || s[i+1:] == Hidden {
		return s, nil
	}
	return s[:i] + "?" + Hidden, []string{s[i+1:]}
}

// URL returns u as text for people: no user info, no fragment, and "…" for the
// query, which in a presigned URL is as good as a password.
func URL(u *url.URL) string {
	if u == nil {
		return ""
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.Opaque != "" {
		shown.Opaque = Hidden
	}
	text := shown.String()
	if u.RawQuery != "" {
		text += "?" + Hidden
	}
	return text
}

// anyURL finds URLs in the text of errors. A quoted one ends at the quote.
var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]+://[^\s"<>]*`)

// InText redacts every URL in text, as errors of net/http and those around it
// quote them.
func InText(text string) string { return anyURL.ReplaceAllStringFunc(text, Redact) }

// secretKeys are keys of a query that carry a token, or an end.
var secretKeys = regexp.MustCompile(`(?i)signature|token|expires|credential|^sig$|^se$|password|secret|api.?key`)

// maxKey is the longest name of a key, in bytes.
const maxKey = 24

// Of says what of an address is a secret, so that it can't be for everybody; ""
// where nothing is.
func Of(u *url.URL) string {
	if u.User != nil {
		return "a user name"
	}
	for key, values := range u.Query() {
		switch {
		case !secretKeys.MatchString(key):
		case len(key) > maxKey || values[0] == "":
			return "a token in its query" // it may be the key itself
		default:
			return strconv.QuoteToASCII(key) + " in its query"
		}
	}
	return ""
}
