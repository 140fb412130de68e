package convert

import (
	"path"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// category is what a layer holds, as the ModelPack specification cuts it.
// https://github.com/modelpack/model-spec/blob/v0.0.7/docs/spec.md
type category string

const (
	categoryConfig  category = "weight.config"
	categoryWeight  category = "weight"
	categoryCode    category = "code"
	categoryDoc     category = "doc"
	categoryDataset category = "dataset"
)

// categories is every category, in the order of an artifact's bundles.
var categories = []category{categoryConfig, categoryWeight, categoryCode, categoryDoc, categoryDataset}

// The folders that give their members a category. Below model/ the file name
// decides; any other member is a document.
const (
	modelFolder  = "model/"
	tensorFolder = "tensor_data/"
)

// folderRules say which category a member has by its folder: the first table of
// docs/mapping.md. The first rule whose prefix fits is taken; "" is the name of
// the rule that looks at the file name.
var folderRules = []struct {
	prefix   string
	category category
}{
	{carton.ManifestName, categoryConfig},
	{carton.InfoName, categoryConfig},
	{modelFolder, ""},
	{tensorFolder, categoryDataset},
	{"", categoryDoc},
}

// nameRules say which category a file below model/ has: the second table of
// docs/mapping.md. The first rule that fits the base name, in ASCII lower case,
// is taken: a name in names, a beginning in prefixes, an end in suffixes. A file
// that none fits is a weight.
//
// The rule of weights comes first, so that license_plates.onnx is one.
var nameRules = []struct {
	category category
	names    []string
	prefixes []string
	suffixes []string
}{
	{
		category: categoryWeight,
		suffixes: []string{
			".safetensors", ".pt", ".pth", ".pt2", ".bin", ".onnx", ".gguf", ".ggml", ".h5", ".keras", ".ot",
			".wasm", ".ckpt", ".tflite", ".mlmodel", ".pdparams",
		},
	},
	{
		category: categoryDoc,
		prefixes: []string{"readme", "license", "notice"},
		suffixes: []string{
			".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".mp3", ".mp4", ".wav",
		},
	},
	{
		category: categoryCode,
		suffixes: []string{
			".py", ".pyi", ".ipynb", ".sh", ".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".rs", ".go", ".js",
			".ts", ".java", ".lua", ".r", ".jl", ".whl", ".so", ".dll", ".dylib", ".pyc", ".pyd", ".pyx", ".pxd",
			".typed",
		},
	},
	{
		category: categoryConfig,
		names:    []string{"metadata", "record", "wheel", "installer", "requested"},
		suffixes: []string{
			".json", ".yaml", ".yml", ".toml", ".txt", ".cfg", ".ini", ".vocab", ".model", ".lock", ".tiktoken",
			".jinja", ".proto", ".pbtxt", ".xml", ".csv", ".tsv",
		},
	},
}

// largeBytes is the size from which a file is a weight by its size where no
// rule of nameRules fits its name.
const largeBytes = 16 << 20

// categoryOf returns the category of the member with this path.
func categoryOf(member string) category {
	for _, rule := range folderRules {
		switch {
		case !fitsFolder(member, rule.prefix):
		case rule.category == "":
			c, _ := categoryOfName(path.Base(member))
			return c
		default:
			return rule.category
		}
	}
	panic("unreachable: the last folder rule fits every path")
}

// fitsFolder reports whether rule is a folder that member lies in, the member
// itself, or "".
func fitsFolder(member, rule string) bool {
	if rule == "" || strings.HasSuffix(rule, "/") {
		return strings.HasPrefix(member, rule)
	}
	return member == rule
}

// categoryOfName returns the category of a file below model/ with this base
// name, and whether a rule names it.
func categoryOfName(base string) (c category, named bool) {
	base = lowerASCII(base)
	for _, rule := range nameRules {
		for _, n := range rule.names {
			if base == n {
				return rule.category, true
			}
		}
		for _, p := range rule.prefixes {
			if strings.HasPrefix(base, p) {
				return rule.category, true
			}
		}
		for _, s := range rule.suffixes {
			if strings.HasSuffix(base, s) {
				return rule.category, true
			}
		}
	}
	return categoryWeight, false
}

// isWeight reports whether a member gets a layer of its own whatever the line:
// a file below model/ that a rule calls a weight, or that no rule names and that
// is large. Small files with unknown names (time zones, test data and the like
// come by the hundred with Python packages) are bundled as any others are.
func isWeight(member string, size int64) bool {
	if !strings.HasPrefix(member, modelFolder) {
		return false
	}
	c, named := categoryOfName(path.Base(member))
	return c == categoryWeight && (named || size >= largeBytes)
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
