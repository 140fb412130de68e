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
func packFlags() []cli.Flag {
	return inCategory("what is packed",
		&cli.StringFlag{Name: "runner", Usage: "what loads the model: `NAME` of a runner"},
		&cli.StringFlag{Name: "framework-version", Usage: "which versions of its framework: `REQ`, such as =2.0.1 or >=1.0, <2.0"},
		&cli.Uint64Flag{Name: "runner-compat", Usage: "model/ is laid out as version `N` of the runner's layout"},
		&cli.StringSliceFlag{Name: "opt", Usage: "set the runner's option `KEY=VALUE`; may be repeated"},
		&cli.StringFlag{Name: "name", Usage: "the model's `NAME`"},
		&cli.StringFlag{Name: "description", Usage: "`TEXT` of at most 100 characters"},
		&cli.StringFlag{Name: "model-description", Usage: "`TEXT` of any length, in Markdown"},
		&cli.StringFlag{Name: "license", Usage: "an SPDX `EXPRESSION`"},
		&cli.StringFlag{Name: "repository", Usage: "`URL` of the code that packs the model"},
		&cli.StringFlag{Name: "homepage", Usage: "`URL` of the model"},
		&cli.StringSliceFlag{Name: "platform", Usage: "runs only on this target `TRIPLE`; may be repeated"},
		&cli.StringSliceFlag{Name: "declare-input", Usage: "declare the input `NAME:DTYPE:SHAPE`; may be repeated"},
		&cli.StringSliceFlag{Name: "declare-output", Usage: "declare the output `NAME:DTYPE:SHAPE`; may be repeated"},
		&cli.StringSliceFlag{Name: "self-test", Usage: "add a self test, `TEST`; may be repeated"},
		&cli.StringSliceFlag{Name: "example", Usage: "add an example, `TEST`; may be repeated"},
		&cli.StringFlag{Name: "carton-toml", Usage: "keep `FILE` as carton.toml, byte for byte, in place of all of the above"},
		&cli.StringFlag{Name: "misc", Usage: "add the folder `DIR` as misc/"},
		&cli.StringFlag{Name: "tensor-data", Usage: "add the folder `DIR`, which has an index.toml, as tensor_data/"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "leave out what matches `GLOB`; may be repeated"},
		&cli.StringSliceFlag{Name: "include", Usage: "bring back what is left out and matches `GLOB`; may be repeated"},
		&cli.BoolFlag{Name: "update", Usage: "make a new MANIFEST for a folder that is a carton, whose files were changed"},
		&cli.BoolFlag{Name: "strict", Usage: "refuse what is only warned of else"},
	)
}

func packHelp() string {
	var b strings.Builder
	b.WriteString(`Takes a folder, one model file, or several. Files go to model/ by their paths; a
TorchScript file becomes model/model.pt, a WebAssembly module model/model.wasm:
that is where their runners look. A folder with carton.toml and model/ is taken
as it is; a tree in the Plums Model Format is checked by that format's rules.
The same files and flags give the same carton, bit for bit.

What the files tell is filled in and shown: framework version, platforms, inputs
and outputs of a .pt2; name and licence at the head of a README.md; name and
description of a Plums tree; inputs and outputs of a self test.

`)
	rows := [][]string{{"RUNNER", "COMPAT", "FRAMEWORK", "IN model/"}}
	for _, r := range pack.Runners {
		rows = append(rows, []string{r.Name, fmt.Sprint(r.Compat), r.Framework, r.Expects})
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "%-11s  %-6s  %-18s  %s\n", row[0], row[1], row[2], row[3])
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

Left out is what tools leave in a folder (.git, .gitattributes, __pycache__,
.cache/huggingface/download, .DS_Store and the like; docs/packing.md has the
list), what a file .cartonignore lists, and what --exclude says; --include
brings back. GLOB is as in pull. Symlinks may not lead outside; those to folders
are expanded. A snapshot in a Hugging Face cache is packed as the files that it
stands for.`)
	return b.String()
}

// packOptions reads the flags that packFlags declares.
func packOptions(c *cli.Context) (pack.Options, error) {
	o := pack.Options{
		Info: carton.Info{
			ModelName: c.String("name"), ShortDescription: c.String("description"), ModelDescription: c.String("model-description"),
			License: c.String("license"), Repository: c.String("repository"), Homepage: c.String("homepage"),
			RequiredPlatforms: c.StringSlice("platform"),
			Runner:            carton.Runner{Name: c.String("runner"), RequiredFrameworkVersion: c.String("framework-version")},
		},
		InfoFile: c.String("carton-toml"), Misc: c.String("misc"), TensorData: c.String("tensor-data"),
		Exclude: c.StringSlice("exclude"), Include: c.StringSlice("include"), Update: c.Bool("update"),
		Strict: c.Bool("strict"), AllowInvalid: c.Bool("allow-invalid"),
	}
	if v := o.Runner.RequiredFrameworkVersion; v != "" {
		if err := carton.CheckVersionReq(v); err != nil {
			return o, usagef(c.Command.Name, "--framework-version: %v", err)
		}
	}
	if c.IsSet("runner-compat") {
		n := c.Uint64("runner-compat")
		o.Runner.CompatVersion = &n
	}
	read := func(flag string, parse func(text string) error) error {
		for _, text := range c.StringSlice(flag) {
			if err := parse(text); err != nil {
				return &flagError{fmt.Errorf("%s: --%s: %w", c.Command.Name, flag, err)}
			}
		}
		return nil
	}
	err := errors.Join(
		read("opt", func(text string) error {
			key, value, err := pack.ParseOpt(text)
			if o.Runner.Opts == nil {
				o.Runner.Opts = map[string]any{}
			}
			o.Runner.Opts[key] = value
			return err
		}),
		read("declare-input", func(text string) error {
			s, err := pack.ParseSpec(text)
			o.Inputs = append(o.Inputs, s)
			return err
		}),
		read("declare-output", func(text string) error {
			s, err := pack.ParseSpec(text)
			o.Outputs = append(o.Outputs, s)
			return err
		}),
		read("self-test", func(text string) error {
			t, err := pack.ParseTest(text, false)
			o.AddSelfTests = append(o.AddSelfTests, t)
			return err
		}),
		read("example", func(text string) error {
			t, err := pack.ParseTest(text, true)
			o.AddExamples = append(o.AddExamples, t)
			return err
		}),
		read("link", func(text string) error {
			l, err := pack.ParseLink(text)
			o.Links = append(o.Links, l)
			return err
		}),
	)
	return o, err
}

// flagError is an error about flags that another package found.
type flagError struct{ error }

func (e *flagError) Is(target error) bool { return target == errUsage }
func (e *flagError) Unwrap() error        { return e.error }
