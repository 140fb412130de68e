package inspect

import (
	"fmt"
	"path"
	"strings"
)

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
