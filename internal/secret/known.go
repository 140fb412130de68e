package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// Shorter ones can't be told from words.
	minText   = 4 // bytes, in text for people
	minResult = 8 // bytes, in a result, whose names must keep their meaning
	// How many are remembered: the oldest tokens are expired.
	maxKnown = 1000
)

var known struct {
	sync.Mutex
	values       []string // in the order of their arrival
	text, result *strings.Replacer
}

// Add makes values known.
func Add(values ...string) {
	known.Lock()
	defer known.Unlock()
	for _, v := range values {
		if len(v) < minText || slices.Contains(known.values, v) {
			continue
		}
		if len(known.values) == maxKnown {
			known.values = slices.Delete(known.values, 0, 1)
		}
		known.values = append(known.values, v)
		known.text, known.result = nil, nil
	}
}

// AddLogin makes a password known, and what is sent of it with a user name.
func AddLogin(user, password string) {
	if password != "" {
		Add(password, user+":"+password)
	}
}

// Strike returns text without the known secrets.
func Strike(text string) string {
	known.Lock()
	defer known.Unlock()
	if len(known.values) == 0 {
		return text
	}
	if known.text == nil {
		known.text = replacer(minText)
	}
	return known.text.Replace(text)
}

// StrikeResult is Strike for what programs read: it leaves secrets that are so
// short that they may be part of a name.
func StrikeResult(text string) string {
	known.Lock()
	defer known.Unlock()
	if len(known.values) == 0 {
		return text
	}
	if known.result == nil {
		known.result = replacer(minResult)
	}
	return known.result.Replace(text)
}

func replacer(shortest int) *strings.Replacer {
	var all []string
	for _, v := range known.values {
		for _, f := range forms(v) {
			if len(f) >= shortest {
				all = append(all, f)
			}
		}
	}
	// Of two that begin alike the longer one counts.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, f := range slices.Compact(all) {
		pairs = append(pairs, f, Hidden)
	}
	return strings.NewReplacer(pairs...)
}

// forms returns how a secret is written.
func forms(v string) []string {
	quoted, _ := json.Marshal(v) // of a string
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted))
	all := []string{
		v, inner(string(quoted)), inner(plain), inner(strconv.Quote(v)), inner(strconv.QuoteToASCII(v)),
		base64.StdEncoding.EncodeToString([]byte(v)), base64.RawStdEncoding.EncodeToString([]byte(v)),
		base64.URLEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)),
		percent(v),
	}
	for _, escaped := range []string{
		url.QueryEscape(v), url.PathEscape(v), url.UserPassword("", v).String()[1:],
		percent(v),
	} {
		all = append(all, escaped, lowerHex(escaped))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// percent escapes every byte that is no letter and no digit.
func percent(v string) string {
	var b strings.Builder
	for i := range len(v) {
		c := v[i]
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			b.WriteByte(c)
			continue
		}
		const hex = "0123456789ABCDEF"
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}

// lowerHex writes percent-escapes with small letters.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}
