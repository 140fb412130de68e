package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// packFlags are those that say what is made of loose files, on the way to a
// file or to a registry.
func packFlags(o *pack.Options) []cli.Flag {
	spec := func(to *[]carton.TensorSpec) func(string) error {
		return func(text string) error {
			s, err := pack.ParseSpec(text)
			*to = append(*to, s)
			return err
		}
	}
	test := func(to *[]pack.Test, example bool) func(string) error {
		return func(text string) error {
			t, err := pack.ParseTest(text, example)
			*to = append(*to, t)
			return err
		}
	}
	return inCategory(whatIsPacked, append(runnerFlags(o, "what loads the model: `NAME` of a runner", ""),
		text(&o.ModelName, "name", "the model's `NAME`"),
		text(&o.ShortDescription, "description", "`TEXT` of at most 100 characters"),
		text(&o.ModelDescription, "model-description", "`TEXT` of any length, in Markdown"),
		text(&o.License, "license", "an SPDX `EXPRESSION`"),
		text(&o.Repository, "repository", "`URL` of the code that packs the model"),
		text(&o.Homepage, "homepage", "`URL` of the model"),
		list(&o.RequiredPlatforms, "platform", "runs only on this target `TRIPLE`"),
		each("declare-input", "declare the input `NAME:DTYPE:SHAPE`", spec(&o.Inputs)),
		each("declare-output", "declare the output `NAME:DTYPE:SHAPE`", spec(&o.Outputs)),
		each("self-test", "add a self test, `TEST`", test(&o.AddSelfTests, false)),
		each("example", "add an example, `TEST`", test(&o.AddExamples, true)),
		text(&o.InfoFile, "carton-toml", "keep `FILE` as carton.toml, byte for byte, in place of all of the above"),
		text(&o.Misc, "misc", "add the folder `DIR` as misc/"),
		text(&o.TensorData, "tensor-data", "add the folder `DIR`, which has an index.toml, as tensor_data/"),
		list(&o.Exclude, "exclude", "leave out what matches `GLOB`"),
		list(&o.Include, "include", "bring back what is left out and matches `GLOB`"),
		parsed("shard", "cut safetensors and GGUF files that are larger into files of at most `SIZE`",
			func(text string) (err error) {
				if o.Shard, err = parseSize(text); err == nil && o.Shard == 0 {
					err = errors.New("got 0, want a size such as 4GB")
				}
				return err
			}),
		yes(&o.Update, "update", "make a new MANIFEST for a folder that is a carton, whose files were changed"),
		yes(&o.Strict, "strict", "refuse what is only warned of else"),
	)...)
}

// runnerFlags say what loads a model; what is said of the first, and what stands
// before what is said of the others.
func runnerFlags(o *pack.Options, first, before string) []cli.Flag {
	return []cli.Flag{
		text(&o.Runner.Name, "runner", first),
		parsed("framework-version", before+"which versions of its framework: `REQ`, such as =2.0.1 or >=1.0, <2.0",
			func(text string) error {
				o.Runner.RequiredFrameworkVersion = text
				return carton.CheckVersionReq(text)
			}),
		&cli.Uint64Flag{
			Name: "runner-compat", Usage: before + "model/ is laid out as version `N` of the runner's layout",
			Action: func(_ *cli.Context, n uint64) error {
				o.Runner.CompatVersion = &n
				return nil
			},
		},
		each("opt", before+"set the runner's option `KEY=VALUE`", func(text string) error {
			key, value, err := pack.ParseOpt(text)
			if o.Runner.Opts == nil {
				o.Runner.Opts = map[string]any{}
			}
			o.Runner.Opts[key] = value
			return err
		}),
	}
}

func packHelp() string {
	var b strings.Builder
	b.WriteString(`Takes a folder, one model file, or several. Files go to model/ by their paths; a
TorchScript file becomes model/model.pt, a WebAssembly module model/model.wasm:
that is where their runners look. A folder with carton.toml and model/ is taken
as it is; a tree in the Plums Model Format is checked by that format's rules.
The same files and flags give the same carton, bit for bit.

hf:ORG/NAME, or hf:ORG/NAME@REV for a branch, tag or commit, is a repository of
the Hugging Face hub: the same carton as of a folder or a cache with its files.
HF_TOKEN, HF_ENDPOINT and what "hf auth login" keeps are read.

What the files tell is filled in and shown: framework version, platforms, inputs
and outputs of a .pt2; name, licence and base model at the head of a README.md
or in a GGUF file; name and description of a Plums tree; inputs and outputs of a
self test. A model that no file says a runner for is only stored: its runner is
noop.

`)
	const row = "%-11s  %-6v  %-18s  %s\n"
	fmt.Fprintf(&b, row, "RUNNER", "COMPAT", "FRAMEWORK", "IN model/")
	for _, r := range pack.Runners {
		fmt.Fprintf(&b, row, r.Name, r.Compat, r.Framework, r.Expects)
	}
	b.WriteString(`
Any other runner may be named. python wants the options entrypoint_package and
entrypoint_fn, and a carton.lock, which Carton's own packer makes. An option is
an integer, float or boolean where it looks like one, and in double quotes a
string.

SHAPE is [batch,3,224], a symbol for all of it, or * for any. TEST is parts with
commas between them, input:NAME=FILE,expected:NAME=FILE,name:TEXT (in an example
output:NAME=FILE); FILE is a .npy, a .safetensors with one tensor, or
@tensor_data/NAME or, in an example, @misc/PATH. Or TEST is a .safetensors file
whose tensors are called input.NAME and expected.NAME or output.NAME.

--shard is for registries that take no large layer, and for pulls in parallel: a
model is cut at its tensors, and its files are named and filled as the tools of
the Hugging Face hub and gguf-split do it, so that programs load them as they
are.

Left out is what tools leave in a folder (.git, .gitattributes, __pycache__,
.cache/huggingface/download, .DS_Store and the like; docs/packing.md has the
list), what a file .cartonignore lists, and what --exclude says; --include
brings back. GLOB is as in pull. Symlinks may not lead outside; those to folders
are expanded. A snapshot in a Hugging Face cache is packed as the files that it
stands for.`)
	return b.String()
}
