package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/formats"
)

// formatOf returns the format of a file, "" where its name tells none.
func formatOf(member string) string { return filekind.FormatOf(path.Base(member)) }

// file is a member whose name tells its format.
type file struct {
	carton.Member
	format string
}

// reader returns what reads files of that format, nil where nothing does.
func (f *file) reader() *modelfile.Format { return formats.Of(path.Base(f.Path)) }

// filesOf returns the members whose names tell a format; of those with one hash
// the first by path.
func filesOf(members []carton.Member) []file {
	var files []file
	seen := map[string]bool{}
	for _, m := range members {
		f := formatOf(m.Path)
		if f == "" || seen[m.Hash] {
			continue
		}
		seen[m.Hash] = true
		files = append(files, file{m, f})
	}
	return files
}

// regular returns files in the order of their paths, with the regular file in
// place of a symlink to it where both names tell the same format.
func regular(files []file, members []carton.Member) []file {
	byHash := map[string]file{} // of the first, as of all that have one hash
	for _, m := range members {
		if _, ok := byHash[m.Hash]; !ok && m.Target == "" && formatOf(m.Path) != "" {
			byHash[m.Hash] = file{m, formatOf(m.Path)}
		}
	}
	out := slices.Clone(files)
	for i, f := range out {
		if r, ok := byHash[f.Hash]; ok && f.Target != "" && r.format == f.format {
			out[i] = r
		}
	}
	slices.SortStableFunc(out, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// readable returns those files that are looked into.
func readable(files []file) []file {
	return slices.DeleteFunc(slices.Clone(files), func(f file) bool { return f.reader() == nil })
}

// ranged reports whether a range of a member costs that range and little more.
func ranged(m carton.Member) bool {
	switch m.Place {
	case carton.PlaceStored, carton.PlaceFile, carton.PlaceBlob:
		return true
	default:
		return m.Ranged
	}
}
