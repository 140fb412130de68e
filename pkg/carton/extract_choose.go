package carton

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// choose returns the members to extract. A symlink whose target is not among
// them is returned as the file that it stands for.
func choose(members []Member, opts ExtractOptions) ([]Member, error) {
	prefix := folderPrefix(opts.Folder)
	chosen := map[string]bool{}
	for _, m := range members {
		chosen[m.Path] = strings.HasPrefix(m.Path, prefix) &&
			(len(opts.Include) == 0 || matchAny(opts.Include, m.Path)) && !matchAny(opts.Exclude, m.Path)
	}
	var list []Member
	for _, m := range members {
		if !chosen[m.Path] {
			continue
		}
		if m.Target != "" && !chosen[path.Join(path.Dir(m.Path), m.Target)] {
			m.Target = ""
		}
		list = append(list, m)
	}
	if len(list) > 0 {
		return list, nil
	}
	if prefix != "" && !slices.ContainsFunc(members, func(m Member) bool { return strings.HasPrefix(m.Path, prefix) }) {
		return nil, errorf(fs.ErrNotExist, strings.TrimSuffix(prefix, "/"), "is no folder of the carton")
	}
	return nil, errorf(fs.ErrNotExist, "", "no member is matched by what to include and exclude")
}

// folderPrefix returns what paths below a folder begin with: "" for the root.
func folderPrefix(folder string) string {
	if folder = path.Clean("/" + folder); folder == "/" {
		return ""
	}
	return folder[1:] + "/"
}

// checkPatterns refuses patterns that match nothing by mistake.
func checkPatterns(opts ExtractOptions) error {
	for _, p := range slices.Concat(opts.Include, opts.Exclude) {
		if _, err := path.Match(p, ""); err != nil || strings.Trim(p, "/") == "" {
			return fmt.Errorf("pattern %q: %w", p, path.ErrBadPattern)
		}
	}
	return nil
}

func matchAny(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchPattern(pattern, p) })
}

// matchPattern is the rule of [ExtractOptions].
func matchPattern(pattern, p string) bool {
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(pattern, path.Base(p))
		return ok
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	return matchComponents(strings.Split(strings.TrimPrefix(pattern, "/"), "/"), strings.Split(p, "/"))
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

// checkLocalName refuses a path that files of an operating system can't have,
// or would have in another form.
func checkLocalName(goos, p string) error {
	switch goos {
	case "darwin", "ios":
		if !norm.NFC.IsNormalString(p) {
			return errorf(ErrInsecurePath, p, "name is not in Unicode's normal form C, and would not stay as it is on macOS")
		}
	case "windows":
		if why := notOnWindows(p); why != "" {
			return errorf(ErrInsecurePath, p, "%s", why)
		}
	}
	return nil
}
