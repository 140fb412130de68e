package carton

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// choice is what is extracted of a carton.
type choice struct {
	members []Member
	prefix  string // of member paths, that is left out: "", or ends in "/"
	whole   bool   // all members, each at its own path
}

// chooseOf lists the members of a source and chooses those to extract.
func chooseOf(ctx context.Context, src Source, opts ExtractOptions) (choice, error) {
	all, err := listMembers(ctx, src)
	if err != nil {
		return choice{}, err
	}
	chosen, err := choose(all, opts)
	prefix := folderPrefix(opts.Folder)
	return choice{chosen, prefix, len(chosen) == len(all) && prefix == ""}, err
}

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
		return nil, errorf(fs.ErrNotExist, strings.TrimSuffix(prefix, "/"), "is not a folder of the carton")
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
