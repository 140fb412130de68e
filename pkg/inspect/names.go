package inspect

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// quoteName returns a tensor's name for text on one line.
func quoteName(name string) string {
	const most = 100
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	if strings.ContainsAny(name, " \t\"'") || name == "" {
		return strconv.QuoteToGraphic(name)
	}
	return strings.Trim(strconv.QuoteToGraphic(name), `"`)
}

// Match reports whether a tensor's name matches a pattern of [path.Match], in
// which "*" and "?" match slashes too: names of tensors are no paths. A wrong
// pattern is path.ErrBadPattern.
func Match(pattern, name string) (bool, error) {
	const slash = "\x00"
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(name, "/", slash))
	if err != nil {
		return false, fmt.Errorf("%q: %w", pattern, err)
	}
	return ok, nil
}
