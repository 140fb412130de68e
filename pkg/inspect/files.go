package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Format is what weights are kept in, as the ends of file names tell it.
type Format struct {
	Name     string
	Suffixes []string // lower case; any case matches
}

// The formats that are looked into.
const (
	formatSafetensors = "safetensors"
	formatPT2         = "pt2"
)

// formats is part of mapping 1.
var formats = []Format{
	{formatSafetensors, []string{".safetensors"}},
	{"gguf", []string{".gguf", ".ggml"}},
	{"onnx", []string{".onnx"}},
	{formatPT2, []string{".pt2"}},
	{"pytorch", []string{".pt", ".pth", ".bin", ".ckpt", ".ot"}},
	{"wasm", []string{".wasm"}},
	{"keras", []string{".h5", ".keras"}},
	{"tflite", []string{".tflite"}},
	{"coreml", []string{".mlmodel"}},
	{"paddle", []string{".pdparams"}},
}

// Formats returns the formats that [Describe] knows.
func Formats() []Format { return formats }

const modelFolder = "model/"

// formatOf returns the format of a file, "" where its name tells none.
func formatOf(member string) string {
	base := lowerASCII(path.Base(member))
	for _, f := range formats {
		for _, s := range f.Suffixes {
			if strings.HasSuffix(base, s) {
				return f.Name
			}
		}
	}
	return ""
}

// lowerASCII is strings.ToLower without Unicode's cases, which change with its
// version.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// file is a member whose name tells its format.
type file struct {
	carton.Member
	format string
}

// filesOf returns the members below prefix whose names tell a format; of those
// with one hash the first by path.
func filesOf(members []carton.Member, prefix string) []file {
	var files []file
	seen := map[string]bool{}
	for _, m := range members {
		f := formatOf(m.Path)
		if f == "" || !strings.HasPrefix(m.Path, prefix) || seen[m.Hash] {
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
	var out []file
	for _, f := range files {
		if f.format == formatSafetensors || f.format == formatPT2 {
			out = append(out, f)
		}
	}
	return out
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
