package filekind

import (
	"regexp"
	"strings"
)

// Format is what weights are kept in, as the ends of file names tell it.
type Format struct {
	Name     string
	Suffixes []string // lower case; the case of ASCII letters does not count
}

// The formats that are looked into.
const (
	Safetensors = "safetensors"
	GGUF        = "gguf"
	PT2         = "pt2"
)

// What ends the names of the documents that say which file of a model in several,
// its shards, holds which tensor: model.safetensors.index.json, and the same of
// torch.save's.
const (
	ShardIndex        = ".safetensors.index.json"
	PyTorchShardIndex = ".bin.index.json"
)

// indexRule is the name of such a document. That of a variant, such as fp16, has its
// name in one of two places; older versions of diffusers have the first.
// https://github.com/huggingface/diffusers/blob/v0.34.0/src/diffusers/utils/hub_utils.py
var indexRule = regexp.MustCompile(`(?i)^(.+)(\.safetensors|\.bin)(?:\.([a-z0-9_-]+))?\.index(?:\.([a-z0-9_-]+))?\.json$`)

// IndexOf reads the name of a document that says which shard holds which tensor.
// model is how the names of its shards begin: "model.fp16" of
// model.safetensors.index.fp16.json. end is [ShardIndex] or [PyTorchShardIndex], and
// "" for any other name.
func IndexOf(name string) (model, end string) {
	m := indexRule.FindStringSubmatch(name)
	if len(m) == 0 || m[3] != "" && m[4] != "" {
		return "", ""
	}
	model = m[1]
	if variant := m[3] + m[4]; variant != "" {
		model += "." + variant
	}
	return model, LowerASCII(m[2]) + ".index.json"
}

// variantRule is a model's name with a variant behind it, where loaders look for one.
var variantRule = regexp.MustCompile(`^((?:.*/)?(?:model|diffusion_pytorch_model))\.([A-Za-z0-9_-]+)$`)

// IndexName is what the index of a safetensors model is called, whose shards' names
// begin so: that of "model.fp16" is where loaders look for the variant fp16.
func IndexName(model string) string {
	if m := variantRule.FindStringSubmatch(model); m != nil {
		return m[1] + ".safetensors.index." + m[2] + ".json"
	}
	return model + ShardIndex
}

// Formats are the formats of weights: a table of docs/mapping.md. What ends in
// one of these is a weight, however small.
//
// Left out are ends that say nothing of what is inside, or that Python packages
// have by the hundred: .npy, .npz, .zip, .gz, .data. Such a file is a weight by its
// size.
var Formats = []Format{
	{Safetensors, []string{".safetensors"}},
	{GGUF, []string{".gguf", ".ggml"}},
	{"llamafile", []string{".llamafile"}},
	{"onnx", []string{".onnx", ".onnx_data", ".onnx.data"}},
	{PT2, []string{".pt2"}},
	{"executorch", []string{".pte"}},
	{"pytorch", []string{".pt", ".pth", ".ptl", ".bin", ".ckpt", ".ot", ".distcp", ".mar"}},
	{"nemo", []string{".nemo"}},
	{"wasm", []string{".wasm"}},
	{"keras", []string{".h5", ".hdf5", ".keras"}},
	{"tensorflow", []string{".pb", ".data-00000-of-00001"}},
	{"flax", []string{".msgpack"}},
	{"tflite", []string{".tflite", ".litertlm", ".task"}},
	{"coreml", []string{".mlmodel"}},
	{"paddle", []string{".pdparams", ".pdiparams", ".pdmodel"}},
	{"mxnet", []string{".params"}},
	{"caffe", []string{".caffemodel"}},
	{"darknet", []string{".weights"}},
	{"tensorrt", []string{".engine", ".plan", ".trt"}},
	{"pickle", []string{".pkl", ".pickle", ".joblib"}},
	{"xgboost", []string{".ubj"}},
	{"catboost", []string{".cbm"}},
	{"fasttext", []string{".ftz"}},
}

// FormatOf returns the format of a file with this base name, "" where it tells
// none.
func FormatOf(base string) string {
	name, _ := formatOf(base)
	return name
}

// TrimFormat returns a file name without the end that tells a format.
func TrimFormat(name string) string {
	_, suffix := formatOf(name)
	return name[:len(name)-len(suffix)]
}

func formatOf(base string) (name, suffix string) {
	base = LowerASCII(base)
	for _, f := range Formats {
		for _, s := range f.Suffixes {
			if strings.HasSuffix(base, s) {
				return f.Name, s
			}
		}
	}
	return "", ""
}

func weightSuffixes() []string {
	var all []string
	for _, f := range Formats {
		all = append(all, f.Suffixes...)
	}
	return all
}
