// Package filekind says what the files of a model are, by their names: part of
// the mapping between cartons and artifacts (docs/mapping.md).
package filekind

import (
	"slices"
	"strings"
)

// Category is what a member of a carton is, as the ModelPack specification cuts
// it.
// https://github.com/modelpack/model-spec/blob/v0.0.7/docs/spec.md
type Category string

// The categories.
const (
	Config  Category = "weight.config"
	Weight  Category = "weight"
	Code    Category = "code"
	Doc     Category = "doc"
	Dataset Category = "dataset"
)

// All is every category, in the order of an artifact's bundles.
var All = []Category{Config, Weight, Code, Doc, Dataset}

// Rule is one row of the table of names: what a file is whose base name is one
// of Names, begins with one of Prefixes, ends with one of Suffixes or has one of
// Infixes in it. All are in lower case; the case of ASCII letters does not count.
type Rule struct {
	Category Category
	Names    []string
	Prefixes []string
	Infixes  []string
	Suffixes []string
}

// Rules say which category a file below model/ has: the second table of
// docs/mapping.md. The first that fits is taken. The rule of weights stands
// before those of documents and code, so that license_plates.onnx is one.
var Rules = []Rule{
	// What a trainer leaves beside the weights ends as they do.
	{Category: Config, Names: []string{"training_args.bin"}},
	{Category: Weight, Names: []string{"model"}, Suffixes: weightSuffixes()},
	{
		Category: Doc,
		Names: []string{
			".gitattributes", ".gitignore", ".gitkeep", ".gitmodules", ".dockerignore", "authors", "changelog",
			"contributors", "copying", "copyright",
		},
		Prefixes: []string{"readme", "license", "licence", "notice"},
		Suffixes: []string{
			".md", ".rst", ".pdf", ".htm", ".html", ".bib", ".cff", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp",
			".bmp", ".tif", ".tiff", ".mp3", ".mp4", ".wav", ".flac", ".ogg", ".webm", ".mov",
		},
	},
	{
		Category: Code,
		Names:    []string{"dockerfile", "makefile"},
		Infixes:  []string{".so."}, // libcublas.so.12
		Suffixes: []string{
			".py", ".pyi", ".ipynb", ".sh", ".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".rs", ".go", ".js",
			".ts", ".java", ".lua", ".r", ".jl", ".whl", ".jar", ".so", ".a", ".dll", ".dylib", ".exe", ".pyc", ".pyd",
			".pyx", ".pxd", ".typed",
		},
	},
	{Category: Dataset, Suffixes: []string{".parquet", ".arrow", ".tfrecord", ".jsonl"}},
	{
		Category: Config,
		Suffixes: []string{
			".json", ".yaml", ".yml", ".toml", ".txt", ".cfg", ".ini", ".vocab", ".model", ".lock", ".tiktoken",
			".jinja", ".proto", ".pbtxt", ".xml", ".csv", ".tsv",
		},
	},
}

// LargeBytes is the size in bytes from which a file is a weight where no rule
// fits its name.
const LargeBytes = 16 << 20

// Of returns the category of a file below model/ with this base name, and
// whether a rule names it. Where none does, size decides, in bytes.
//
// A large file of unknown name is a weight: a checkpoint in a hub's cache has a
// hash for a name. A small one is none: a program that takes the first weight for
// the model would be given .gitattributes. It is weight.config, and no document
// or code, because those are what a runtime may leave out, and a tokenizer's
// merges or a time zone that is missing breaks the model.
func Of(base string, size int64) (c Category, named bool) {
	base = LowerASCII(base)
	for i := range Rules {
		if Rules[i].fits(base) {
			return Rules[i].Category, true
		}
	}
	if size >= LargeBytes {
		return Weight, false
	}
	return Config, false
}

func (r *Rule) fits(base string) bool {
	with := func(fits func(s, part string) bool) func(string) bool {
		return func(part string) bool { return fits(base, part) }
	}
	return slices.Contains(r.Names, base) || slices.ContainsFunc(r.Prefixes, with(strings.HasPrefix)) ||
		slices.ContainsFunc(r.Infixes, with(strings.Contains)) ||
		slices.ContainsFunc(r.Suffixes, with(strings.HasSuffix))
}

// LowerASCII lowers A to Z and nothing else: what Unicode calls lower case
// changes with its version.
func LowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
