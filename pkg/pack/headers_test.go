package pack_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// ggufOf is a small GGUF file with these keys.
func ggufOf(t *testing.T, keys ...any) string {
	t.Helper()
	return string(modeltest.GGUF(t, 32, keys, modeltest.GGUFOf("w", 0, []uint64{2}, make([]byte, 8))))
}

func partOf(t *testing.T, number, of, tensors int) string {
	t.Helper()
	return ggufOf(t, "split.no", uint16(number-1), "split.count", uint16(of), "split.tensors.count", int32(tensors))
}

// TestAGGUFFileAsksForNothing: what its header says is filled in, and nothing is
// asked for.
func TestAGGUFFileAsksForNothing(t *testing.T) {
	header := []any{
		"general.name", "Tiny Llama", "general.license", "apache-2.0", "general.description", "small", "general.url", "https://example.org/m",
		"general.base_model.count", uint32(1), "general.base_model.0.repo_url", "https://huggingface.co/org/Base-1",
	}
	const base = "huggingface.co/org/Base-1"
	c := open(t, pack.Options{}, file(t, "m.gguf", []byte(ggufOf(t, header...))))
	i := c.Info
	if i.ModelName != "Tiny Llama" || i.License != "Apache-2.0" || i.ShortDescription != "small" || i.Homepage != "https://example.org/m" ||
		i.Runner.Name != "noop" || i.Annotations["org.opencontainers.image.base.name"] != base {
		t.Errorf("got %+v", i)
	}
	wantListing(t, c, "carton.toml", "model/m.gguf", "tensor_data/index.toml")

	// A README says it better, and of two files that disagree neither does.
	both := tree(t, map[string]string{
		"a.gguf": ggufOf(t, header...), "b.gguf": ggufOf(t, "general.name", "Other", "general.license", "Apache-2.0"),
		"README.md": "---\nlicense: mit\nbase_model:\n- org/other\n---\n",
	})
	if i := open(t, pack.Options{}, both).Info; i.ModelName != "" || i.License != "MIT" || i.Annotations["org.opencontainers.image.base.name"] != "huggingface.co/org/other" {
		t.Errorf("got %+v", i)
	}
	given := pack.Options{Info: carton.Info{ModelName: "mine", License: "ISC", Homepage: "https://my.example", ShortDescription: "mine"}}
	if i := open(t, given, both).Info; i.ModelName != "mine" || i.License != "ISC" || i.Homepage != "https://my.example" {
		t.Errorf("got %+v, want what was given", i)
	}
}

func TestBaseModel(t *testing.T) {
	for text, want := range map[string]string{
		"org/name": "huggingface.co/org/name", "gpt2": "huggingface.co/gpt2", "[org/name]": "huggingface.co/org/name",
		"[a/b, c/d]": "", "../up": "", "/data/models/x": "", "a/b/c": "", "https://example.org/x": "", "": "", "{a: b}": "",
	} {
		dir := tree(t, map[string]string{"README.md": "---\nbase_model: " + text + "\n---\n", "a.bin": "x"})
		if got := open(t, noop, dir).Info.Annotations["org.opencontainers.image.base.name"]; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestPartsOfASplitModel: one part stands for all, and a set that is not whole is
// refused.
func TestPartsOfASplitModel(t *testing.T) {
	name := func(n int) string { return gguf.PartName("m", n, 3) }
	dir := tree(t, map[string]string{name(1): partOf(t, 1, 3, 3), name(2): partOf(t, 2, 3, 3), name(3): partOf(t, 3, 3, 3), "other.gguf": ggufOf(t)})
	for n := 1; n <= 3; n++ {
		c := open(t, pack.Options{}, filepath.Join(dir, name(n)))
		wantListing(t, c, "carton.toml", "model/"+name(1), "model/"+name(2), "model/"+name(3), "tensor_data/index.toml")
	}
	for want, files := range map[string]map[string]string{
		"missing are 1 of its 3 parts: 00002":   {name(1): partOf(t, 1, 3, 3), name(3): partOf(t, 3, 3, 3)},
		"say different things of the whole":     {name(1): partOf(t, 1, 3, 3), name(2): partOf(t, 2, 3, 3), name(3): partOf(t, 3, 3, 4)},
		"its parts hold 3 tensors":              {name(1): partOf(t, 1, 3, 4), name(2): partOf(t, 2, 3, 4), name(3): partOf(t, 3, 3, 4)},
		"says of itself that it is part 1 of 3": {"z.gguf": partOf(t, 1, 3, 3)},
		"does not say of itself":                {name(1): ggufOf(t)},
	} {
		dir := tree(t, files)
		refused(t, pack.Options{}, carton.ErrFormat, want, dir)
		c := open(t, pack.Options{AllowInvalid: true}, dir)
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], want) {
			t.Errorf("got the warnings %q, want %q", c.Warnings, want)
		}
	}
}

// TestBrokenGGUF is refused; one of a version that is not read here is a warning.
func TestBrokenGGUF(t *testing.T) {
	refused(t, pack.Options{}, carton.ErrFormat, "model/m.gguf: breaks the GGUF format", tree(t, map[string]string{"m.gguf": "GGUF\x03\x00\x00\x00"}))
	wantWarnings(t, open(t, pack.Options{}, tree(t, map[string]string{"m.gguf": "GGUF\x00\x00\x00\x03"})), "it is big-endian")
	wantWarnings(t, open(t, pack.Options{}, tree(t, map[string]string{"m.ggml": "tjgg\x03\x00\x00\x00"})), "the formats before GGUF (ggjt)")
}

// TestTheRunnerThatFilesTell: it is asked for only where something wants one.
func TestTheRunnerThatFilesTell(t *testing.T) {
	torch := string(modeltest.TorchScript("model"))
	for want, files := range map[string]map[string]string{
		"noop":  {"model.safetensors": string(modeltest.Safetensors(t, nil)), "x.txt": "x"},
		"wasm ": {"model.wasm": "\x00asm\x0d\x00\x01\x00"}, "noop ": {"model.wasm": "no module"}, "noop  ": {"model.pt": "no archive"},
		"torchscript": {"model.pt": torch}, "noop   ": {"other.pt": torch}, "noop    ": {"config.json": "{}", "rust_model.ot": "x"},
	} {
		opts := pack.Options{}
		if want = strings.TrimSpace(want); want != "noop" {
			refused(t, opts, pack.ErrOptions, "nothing says required_framework_version", tree(t, files))
			continue
		}
		if c := open(t, opts, tree(t, files)); c.Info.Runner.Name != want {
			t.Errorf("got the runner %s, want %s", c.Info.Runner.Name, want)
		}
	}
	refused(t, pack.Options{}, pack.ErrOptions, "the option entrypoint_package and the option entrypoint_fn",
		tree(t, map[string]string{".carton/carton.lock": "x", "main.py": "x"}))
}

// TestAnImageLayoutIsNoModel: its blobs would be packed as files of unknown names.
func TestAnImageLayoutIsNoModel(t *testing.T) {
	refused(t, pack.Options{}, carton.ErrInsecurePath, "carton.toml: is a folder", tree(t, map[string]string{"carton.toml/a.bin": "x"}))
	refused(t, pack.Options{}, pack.ErrOptions, "it is an OCI image layout", tree(t, map[string]string{"oci-layout": "{}", "index.json": "{}", "blobs/a.bin": "x"}))
}
