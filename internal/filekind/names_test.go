package filekind_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/filekind"
)

// What every name gives is tested where it reaches a digest, in pkg/convert; here,
// which names are known.
func TestKnownNames(t *testing.T) {
	for name, want := range map[string]struct {
		category filekind.Category
		named    bool
	}{
		"a.BIN": {filekind.Weight, true}, "a": {filekind.Config, false}, "": {filekind.Config, false},
		"RECORD": {filekind.Config, false}, "License.json": {filekind.Doc, true},
		"x.Py": {filekind.Code, true}, "x.py.K": {filekind.Config, false},
		"training_args.bin": {filekind.Config, true}, "my_training_args.bin": {filekind.Weight, true},
		"Model": {filekind.Weight, true}, "model.v3": {filekind.Config, false},
		"libcublas.so.12": {filekind.Code, true}, "libz.so": {filekind.Code, true}, "a.sox": {filekind.Config, false},
	} {
		if c, named := filekind.Of(name, 1); c != want.category || named != want.named {
			t.Errorf("%q: got %s, %v, want %s, %v", name, c, named, want.category, want.named)
		}
	}
}

// What repositories of a hub hold, as their authors named it.
func TestNamesOfHubRepositories(t *testing.T) {
	for category, names := range map[filekind.Category]string{
		filekind.Weight: `model.safetensors consolidated.safetensors consolidated.00.pth pytorch_model.bin rust_model.ot flax_model.msgpack
			tf_model.h5 variables.data-00000-of-00001 saved_model.pb model.onnx model.onnx_data model.gguf model.llamafile model.mar
			model.nemo model.engine model.plan model.params weight.bin model.tflite model.pkl model.joblib openvino_model.bin
			ner/model epoch=1.ckpt __0_0.distcp model.pte gemma.litertlm inference.pdiparams adapter_model.bin lid.176.ftz`,
		filekind.Config: `config.json model.safetensors.index.json pytorch_model.bin.index.json params.json chat_template.jinja Modelfile
			tokenizer tokenizer.json tokenizer.model tokenizer.model.v3 vocab.txt vocab.json merges.txt merges vocab spiece.model
			model.ckpt.index model.ckpt.meta openvino_model.xml voices.npz af.npy ppo-LunarLander-v2.zip labels.csv model.onnx.json
			training_args.bin fingerprint.pb.txt key2row cfg sentencepiece.bpe.model tokenizer.tiktoken`,
		filekind.Doc:     `README.md .gitattributes .gitignore LICENSE LICENCE.txt COPYING NOTICE figure.png sample.flac paper.bib CITATION.cff USE_POLICY.md`,
		filekind.Code:    `modeling.py generate.ipynb Dockerfile libtorch.so libgomp.so.1 flash_attn.whl kernel.cu`,
		filekind.Dataset: `train.parquet data.arrow eval.jsonl part.tfrecord`,
	} {
		for _, name := range strings.Fields(names) {
			if c, _ := filekind.Of(path.Base(name), 4096); c != category {
				t.Errorf("%s: got %s, want %s", name, c, category)
			}
		}
	}
}

func TestNamesWithoutTheirFormat(t *testing.T) {
	for name, want := range map[string][2]string{
		"m.safetensors": {"m", "safetensors"}, "m.PT2": {"m", "pt2"}, "m.onnx_data": {"m", "onnx"}, "m.v1.bin": {"m.v1", "pytorch"},
		"m.json": {"m.json", ""}, "model": {"model", ""}, ".bin": {"", "pytorch"},
	} {
		if got := [2]string{filekind.TrimFormat(name), filekind.FormatOf(name)}; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestIndexNames(t *testing.T) {
	for name, want := range map[string][2]string{
		"a/model.safetensors.index.json": {"a/model", filekind.ShardIndex}, "M.SAFETENSORS.INDEX.JSON": {"M", filekind.ShardIndex},
		"model.safetensors.index.fp16.json": {"model.fp16", filekind.ShardIndex}, "model.safetensors.fp16.index.json": {"model.fp16", filekind.ShardIndex},
		"m.fp16.safetensors.index.json": {"m.fp16", filekind.ShardIndex}, "pytorch_model.bin.index.non_ema.json": {"pytorch_model.non_ema", filekind.PyTorchShardIndex},
		"model.safetensors.a.index.b.json": {}, "model.safetensors.index.a.b.json": {}, "index.json": {}, ".safetensors.index.json": {}, "model.index.json": {},
	} {
		if model, end := filekind.IndexOf(name); model != want[0] || end != want[1] {
			t.Errorf("%s: got %q, %q, want %q", name, model, end, want)
		}
	}
	for model, want := range map[string]string{
		"a/model": "a/model.safetensors.index.json", "a/model.fp16": "a/model.safetensors.index.fp16.json",
		"diffusion_pytorch_model.bf16": "diffusion_pytorch_model.safetensors.index.bf16.json", "qwen2.5": "qwen2.5.safetensors.index.json", "model.v1.5": "model.v1.5.safetensors.index.json",
	} {
		if got := filekind.IndexName(model); got != want {
			t.Errorf("%s: got %s, want %s", model, got, want)
		}
	}
}

// The rules are of categories that there are, and written as they are compared.
func TestRulesAreInLowerCase(t *testing.T) {
	for _, r := range filekind.Rules {
		if !slices.Contains(filekind.All, r.Category) {
			t.Errorf("%s is no category", r.Category)
		}
		for _, s := range slices.Concat(r.Names, r.Prefixes, r.Infixes, r.Suffixes) {
			for _, c := range s {
				if c >= 'A' && c <= 'Z' || c > 127 {
					t.Errorf("%q fits no name", s)
				}
			}
		}
	}
}
