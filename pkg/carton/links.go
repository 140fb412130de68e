package carton

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/tomltext"
)

// Links is a carton's LINKS: where members that the zip leaves out can be
// fetched. It is outside the model hash, so nothing it says is believed before
// the bytes had the right hash.
type Links struct {
	// URLs holds the addresses of a content, best first, by its lower-case hex
	// sha256.
	URLs map[string][]string
}

// linksVersion is the one version of LINKS there is.
const linksVersion = 1

// ParseLinks reads the bytes of a LINKS. They are TOML:
//
//	version = 1
//
//	[urls]
//	e550f6224a5133f597d823ab4590f369e0b20e3c6446488225fc6f7a372b9fe2 = ["https://…/file"]
//
// A version other than the integer 1, or none, is ErrVersion. A key that is no
// lower-case hex sha256 or has no URL is ErrFormat; more than [MaxLinkURLs] for
// one key is ErrLimit. Unknown keys beside version and urls are ignored. What a
// URL looks like is judged when it is followed. See
// https://github.com/VivekPanyam/carton, docs/specification/format.md.
func ParseLinks(b []byte) (*Links, error) {
	doc, err := decodeTOML(LinksName, b, MaxLinksBytes, MaxLinksItems)
	if err != nil {
		return nil, err
	}
	if v, ok := doc["version"].(int64); !ok || v != linksVersion {
		return nil, errorf(ErrVersion, LinksName, "version is %s, and should be the integer %d",
			describe(doc["version"]), linksVersion)
	}
	urls, ok := doc["urls"].(map[string]any)
	if !ok {
		return nil, errorf(ErrFormat, LinksName, "has no table [urls]")
	}
	if len(urls) > MaxMembers {
		return nil, errorf(ErrLimit, LinksName, "lists %d contents, and may list at most %d", len(urls), MaxMembers)
	}
	l := &Links{URLs: make(map[string][]string, len(urls))}
	for _, hash := range slices.Sorted(maps.Keys(urls)) {
		list, err := parseLink(hash, urls[hash])
		if err != nil {
			return nil, err
		}
		l.URLs[hash] = list
	}
	return l, nil
}

// parseLink judges one line.
func parseLink(hash string, value any) ([]string, error) {
	if err := checkHash(hash); err != nil {
		return nil, of(LinksName, err)
	}
	items, ok := value.([]any)
	if !ok {
		return nil, errorf(ErrFormat, LinksName, "the value of %s is not a list of URLs", hash)
	}
	switch {
	case len(items) == 0:
		return nil, errorf(ErrFormat, LinksName, "%s has no URL", hash)
	case len(items) > MaxLinkURLs:
		return nil, errorf(ErrLimit, LinksName, "%s has %d URLs, and may have at most %d", hash, len(items),
			MaxLinkURLs)
	}
	list := make([]string, len(items))
	for i, item := range items {
		if list[i], ok = item.(string); !ok || list[i] == "" {
			return nil, errorf(ErrFormat, LinksName, "%s: item %d of its list is not a URL", hash, i+1)
		}
	}
	return list, nil
}

// Marshal returns the bytes of LINKS: a function of the content alone, keys in
// bytewise order, one a line.
func (l *Links) Marshal() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "version = %d\n\n[urls]\n", linksVersion)
	for _, hash := range slices.Sorted(maps.Keys(l.URLs)) {
		b.WriteString(hash + " = [")
		for i, u := range l.URLs[hash] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(tomltext.Quote(u))
		}
		b.WriteString("]\n")
	}
	return []byte(b.String())
}
