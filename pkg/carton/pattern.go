package carton

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// MatchPath reports whether a path matches a pattern, by the one rule that
// [ExtractOptions] states.
func MatchPath(pattern, p string) bool {
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(pattern, path.Base(p))
		return ok
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	return matchComponents(strings.Split(strings.TrimPrefix(pattern, "/"), "/"), strings.Split(p, "/"))
}

// CheckPatterns refuses patterns that match nothing by mistake, with an error
// that wraps path.ErrBadPattern.
func CheckPatterns(patterns ...string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || strings.Trim(p, "/") == "" {
			return fmt.Errorf("pattern %q: %w", p, path.ErrBadPattern)
		}
	}
	return nil
}

func matchAny(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return MatchPath(pattern, p) })
}

// matchComponents matches one component after another. reach[i] says whether
// the pattern so far can stand for the first i components, which keeps many
// "**" from costing more than their number times the path's length.
func matchComponents(pattern, p []string) bool {
	reach := make([]bool, len(p)+1)
	reach[0] = true
	for _, c := range pattern {
		next := make([]bool, len(p)+1)
		for i := range reach {
			if c == "**" {
				next[i] = reach[i] || i > 0 && next[i-1]
			} else if i > 0 && reach[i-1] {
				next[i], _ = path.Match(c, p[i-1])
			}
		}
		reach = next
	}
	return reach[len(p)]
}
