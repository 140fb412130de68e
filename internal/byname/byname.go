// Package byname says what the files of a model are, by their names: part of
// the mapping between cartons and artifacts (docs/mapping.md).
package byname

import "strings"

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

// Rules say which category a file below model/ has: the second table of
// docs/mapping.md. The first rule that fits the base name, in ASCII lower case,
// is taken: a name in Names, a beginning in Prefixes, an end in Suffixes. A file
// that none fits is a weight.
//
// The rule of weights comes first, so that license_plates.onnx is one.
var Rules = []struct {
	Category Category
	Names    []string
	Prefixes []string
	Suffixes []string
}{
	{
		Category: Weight,
		Suffixes: []string{
			".safetensors", ".pt", ".pth", ".pt2", ".bin", ".onnx", ".gguf", ".ggml", ".h5", ".keras", ".ot",
			".wasm", ".ckpt", ".tflite", ".mlmodel", ".pdparams",
		},
	},
	{
		Category: Doc,
		Prefixes: []string{"readme", "license", "notice"},
		Suffixes: []string{
			".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".mp3", ".mp4", ".wav",
		},
	},
	{
		Category: Code,
		Suffixes: []string{
			".py", ".pyi", ".ipynb", ".sh", ".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".rs", ".go", ".js",
			".ts", ".java", ".lua", ".r", ".jl", ".whl", ".so", ".dll", ".dylib", ".pyc", ".pyd", ".pyx", ".pxd",
			".typed",
		},
	},
	{
		Category: Config,
		Names:    []string{"metadata", "record", "wheel", "installer", "requested"},
		Suffixes: []string{
			".json", ".yaml", ".yml", ".toml", ".txt", ".cfg", ".ini", ".vocab", ".model", ".lock", ".tiktoken",
			".jinja", ".proto", ".pbtxt", ".xml", ".csv", ".tsv",
		},
	},
}

// Of returns the category of a file below model/ with this base name, and
// whether a rule names it.
func Of(base string) (c Category, named bool) {
	base = lowerASCII(base)
	for _, rule := range Rules {
		for _, n := range rule.Names {
			if base == n {
				return rule.Category, true
			}
		}
		for _, p := range rule.Prefixes {
			if strings.HasPrefix(base, p) {
				return rule.Category, true
			}
		}
		for _, s := range rule.Suffixes {
			if strings.HasSuffix(base, s) {
				return rule.Category, true
			}
		}
	}
	return Weight, false
}

// lowerASCII lowers A to Z and nothing else: what Unicode calls lower case
// changes with its version.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
