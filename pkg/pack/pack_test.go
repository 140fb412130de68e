package pack_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/google/go-cmp/cmp"
)

var fixed = map[string]string{
	"weights.bin":        strings.Repeat("0123456789abcdef", 300_000), // read in several pieces
	"sub/config.json":    "{}\n",
	"sub/latest.bin":     "-> ../weights.bin",
	".hidden":            "",
	".git/HEAD":          "ref: refs/heads/main\n",
	".github/ci.yml":     "on: push\n",
	"empty/":             "",
	"ünïcode/名前.txt":     "text\n",
	"sub/.git":           "gitdir: elsewhere\n",
	"sub/deep/.svn/file": "x",
}

// The carton of fixed files is a constant: a change of these numbers is a change
// of every carton that anybody packs again.
func TestGolden(t *testing.T) {
	n := uint64(7)
	opts := pack.Options{Info: carton.Info{ModelName: "The \"name\"", ShortDescription: "Short", ModelDescription: "Two\nlines\n", License: "MIT", Repository: "https://example.com/r", Homepage: "https://example.com/", RequiredPlatforms: []string{"x86_64-unknown-linux-gnu", "aarch64-apple-darwin"}, Inputs: []carton.TensorSpec{
		{Name: "x", DType: carton.Float32, Shape: carton.Shape{Dims: []carton.Dim{{Symbol: "batch"}, {Size: 3}}}, Description: "pixels"},
		{Name: "n", DType: carton.Int64, Shape: carton.Shape{Dims: []carton.Dim{}}},
	}, Outputs: []carton.TensorSpec{{Name: "y", DType: carton.Float32, Shape: carton.Shape{Symbol: "*"}, InternalName: "out:0"}}, Runner: carton.Runner{Name: "torchscript", RequiredFrameworkVersion: "=2.0.1", CompatVersion: &n, Opts: map[string]any{"threads": int64(4), "a key": "text", "rate": 0.5, "whole": 2.0, "big": 1e30, "on": true}}}}
	c := open(t, opts, tree(t, fixed))
	const want = `spec_version = 1
model_name = "The \"name\""
short_description = "Short"
model_description = '''
Two
lines
'''
license = "MIT"
repository = "https://example.com/r"
homepage = "https://example.com/"
required_platforms = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin"]

[[input]]
name = "x"
dtype = "float32"
shape = ["batch", 3]
description = "pixels"

[[input]]
name = "n"
dtype = "int64"
shape = []

[[output]]
name = "y"
dtype = "float32"
shape = "*"
internal_name = "out:0"

[runner]
runner_name = "torchscript"
required_framework_version = "=2.0.1"
runner_compat_version = 7

[runner.opts]
"a key" = "text"
big = 1e+30
on = true
rate = 0.5
threads = 4
whole = 2.0
`
	if diff := cmp.Diff(want, read(t, c, carton.InfoName)); diff != "" {
		t.Error(diff)
	}
	wantListing(t, c, "carton.toml", "model/.github/ci.yml", "model/.hidden", "model/sub/config.json",
		"model/sub/latest.bin -> ../weights.bin", "model/weights.bin", "model/ünïcode/名前.txt", "tensor_data/index.toml")
	const modelHash = "26d397bd8e1e8d7b80cb6d0b28f97d53960f34e86bda9d55aaba8416f0677039"
	if got := c.Manifest().ModelHash(); got != modelHash {
		t.Errorf("got the model hash %s, want %s", got, modelHash)
	}
	const zipHash = "0e0155872bb80d3721c67778d2dd56fcd846e49d6c3bc7a7db386896f9c431e5"
	if got, _ := assemble(t, c); got != zipHash {
		t.Errorf("got the carton %s, want %s", got, zipHash)
	}
	if diff := cmp.Diff([]string{".git", "empty/", "sub/.git", "sub/deep/.svn"}, c.LeftOut); diff != "" {
		t.Error(diff)
	}
}

// Another folder, other dates, modes and an order of writing: the same carton.
func TestOnlyPathsAndContentCount(t *testing.T) {
	one := open(t, noop, tree(t, fixed))
	dir := tree(t, fixed)
	if err := os.Chmod(filepath.Join(dir, "weights.bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "another name")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	opts := noop
	opts.Concurrency = 1
	other := open(t, opts, moved)
	a, _ := assemble(t, one)
	b, _ := assemble(t, other)
	if a != b || one.Manifest().ModelHash() != other.Manifest().ModelHash() {
		t.Errorf("got the cartons %s and %s, want the same", a, b)
	}
}

func TestTheResultIsACarton(t *testing.T) {
	c := open(t, noop, tree(t, fixed))
	_, name := assemble(t, c)
	src, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for what, s := range map[string]carton.Source{"the source": c, "the zip": src} {
		report, err := carton.Verify(t.Context(), s, carton.VerifyOptions{})
		if err != nil || !report.OK() || len(report.Findings) != 0 {
			t.Errorf("%s: got %+v, %v", what, report, err)
		}
	}
	if src.Manifest().ModelHash() != c.Manifest().ModelHash() {
		t.Error("the model hash differs")
	}
}

func TestRanges(t *testing.T) {
	c := open(t, noop, tree(t, map[string]string{"a": "0123456789", "l": "-> a"}))
	for _, r := range []struct {
		path   string
		off, n int64
		want   string
		err    error
	}{
		{"model/a", 2, 3, "234", nil},
		{"model/l", 8, -1, "89", nil},
		{"model/a", 8, 5, "89", io.ErrUnexpectedEOF},
		{"carton.toml", 0, 12, "spec_version", nil},
		{"MANIFEST", 0, 11, "carton.toml", nil},
	} {
		body, err := c.OpenRange(t.Context(), r.path, r.off, r.n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if string(got) != r.want || !errors.Is(err, r.err) {
			t.Errorf("%s %d+%d: got %q, %v, want %q, %v", r.path, r.off, r.n, got, err, r.want, r.err)
		}
		body.Close()
	}
	if _, err := c.Open(t.Context(), "model/b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

func TestWhatIsMissingIsNamedAtOnce(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"}) // nothing that looks like a model
	err := refused(t, pack.Options{}, pack.ErrOptions, "nothing says runner_name and required_framework_version", dir)
	var missing *pack.MissingError
	if !errors.As(err, &missing) || len(missing.Fields) != 2 {
		t.Errorf("got %v, want a MissingError of two fields", err)
	}
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "python"}}}, pack.ErrOptions, "nothing says required_framework_version", dir)
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{RequiredFrameworkVersion: "*"}}}, pack.ErrOptions, "nothing says runner_name", dir)
}

func TestWhatTheRunnerMissesIsAWarning(t *testing.T) {
	dir := tree(t, map[string]string{"main.py": "x"})
	// What its options are is asked for with the rest, where carton.toml is not given.
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "python", Opts: map[string]any{"entrypoint_fn": "f"}}}}, pack.ErrOptions,
		"nothing says required_framework_version and the option entrypoint_package", dir)
	toml := file(t, "carton.toml", []byte("spec_version = 1\nrunner = { runner_name = 'python', required_framework_version = '*', runner_compat_version = 1 }\n"))
	opts := pack.Options{InfoFile: toml}
	c := open(t, opts, dir)
	wantWarnings(t, c, "model/.carton/carton.lock, the option entrypoint_package and the option entrypoint_fn, which are not there")
	opts.Strict = true
	refused(t, opts, carton.ErrFormat, "entrypoint_fn", dir)
	write(t, dir, map[string]string{".carton/carton.lock": "x"})
	said := map[string]any{"entrypoint_package": "main", "entrypoint_fn": "load"}
	wantWarnings(t, open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "python", RequiredFrameworkVersion: "=3.11", Opts: said}}}, dir))
	for _, r := range pack.Runners {
		if r.Compat != 1 {
			t.Errorf("%s: got the compat version %d, want 1", r.Name, r.Compat)
		}
	}
}

func TestFilledIn(t *testing.T) {
	c := open(t, noop, tree(t, map[string]string{"a": "x"}))
	want := []pack.Fact{
		{Field: "runner.required_framework_version", Value: "*", From: "noop has no framework"},
		{Field: "runner.runner_compat_version", Value: "1", From: "what the runner noop reads"},
	}
	if diff := cmp.Diff(want, c.Filled); diff != "" {
		t.Error(diff)
	}
	c = open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "my-own", RequiredFrameworkVersion: "~1.2"}}}, tree(t, map[string]string{"a": "x"}))
	if len(c.Filled) != 1 || !strings.Contains(c.Filled[0].From, "assumed") {
		t.Errorf("got %v, want an assumed compat version", c.Filled)
	}
}

func TestOptionsAreValidated(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"})
	for text, change := range map[string]func(*pack.Options){
		"required_framework_version": func(o *pack.Options) { o.Runner.RequiredFrameworkVersion = "2.0 or so" },
		"required_platforms":         func(o *pack.Options) { o.RequiredPlatforms = []string{"linux/amd64"} },
		"runner.opts.x":              func(o *pack.Options) { o.Runner.Opts = map[string]any{"x": []string{}} },
		"no file or folder":          nil,
	} {
		opts := noop
		if change == nil {
			refused(t, opts, pack.ErrOptions, text)
			continue
		}
		change(&opts)
		if _, err := pack.Open(t.Context(), []string{dir}, opts); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want an error about %s", err, text)
		}
	}
}

func TestACartonIsNotPackedAgain(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"})
	_, name := assemble(t, open(t, noop, dir))
	err := refused(t, noop, pack.ErrCarton, "is a carton already", name)
	if len(hint.Of(err)) == 0 {
		t.Error("want a hint")
	}
	other := filepath.Join(t.TempDir(), "m.zip")
	if err := os.Rename(name, other); err != nil {
		t.Fatal(err)
	}
	refused(t, noop, pack.ErrCarton, "is a carton already", other)
	write(t, dir, map[string]string{"MANIFEST": "carton.toml=00\n"})
	wantListing(t, open(t, noop, dir), "carton.toml", "model/MANIFEST", "model/a", "tensor_data/index.toml") // somebody's own
	write(t, dir, map[string]string{"carton.toml": "spec_version = 1\n"})
	refused(t, noop, pack.ErrCarton, "MANIFEST", dir)
}

// A folder that is laid out as a carton gets the MANIFEST that it lacks.
func TestALaidOutFolderKeepsItsCartonToml(t *testing.T) {
	const toml = "# mine\nspec_version = 1\nrunner = { runner_name = 'noop', required_framework_version = '*', runner_compat_version = 1 }\n"
	files := map[string]string{
		"carton.toml": toml, "model/a": "x", "misc/b.md": "text", "misc/l": "-> b.md", "tensor_data/index.toml": "tensor = []\n",
	}
	dir := tree(t, files)
	c := open(t, pack.Options{}, dir)
	wantListing(t, c, "carton.toml", "misc/b.md", "misc/l", "model/a", "tensor_data/index.toml")
	if got := read(t, c, "carton.toml"); got != toml {
		t.Errorf("got carton.toml %q, want it as it was", got)
	}
	if read(t, c, "misc/l") != "text" { // symlinks are model/'s alone
		t.Error("want the symlink's content")
	}
	refused(t, noop, pack.ErrOptions, "runner.runner_name is given", dir)
	refused(t, pack.Options{InfoFile: filepath.Join(dir, "carton.toml")}, pack.ErrOptions, "another is given", dir)
	write(t, dir, map[string]string{"LINKS": "version = 1\n"})
	refused(t, pack.Options{}, carton.ErrFormat, "LINKS", dir)
}

func TestACartonTomlIsKeptByteForByte(t *testing.T) {
	const toml = "spec_version = 1 # as it is\n[runner]\nrunner_name='x'\nrequired_framework_version='*'\nrunner_compat_version=3\n[custom]\nk=1\n"
	dir := tree(t, map[string]string{"a": "x"})
	name := filepath.Join(t.TempDir(), "mine.toml")
	for _, c := range []struct {
		text  string
		force bool
		err   string
	}{
		{toml, false, ""},
		{"spec_version = 1\n", false, "runner"},
		{"spec_version = 1\n", true, ""},
		{"[", false, "carton.toml"},
	} {
		if err := os.WriteFile(name, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		opts := pack.Options{InfoFile: name, AllowInvalid: c.force}
		if c.err != "" {
			refused(t, opts, carton.ErrFormat, c.err, dir)
			continue
		}
		if got := read(t, open(t, opts, dir), carton.InfoName); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
	}
	refused(t, pack.Options{Info: carton.Info{ModelName: "x"}, InfoFile: name}, pack.ErrOptions, "model_name beside it", dir)
}

func TestMiscAndTensorData(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"})
	misc := tree(t, map[string]string{"pic.png": "png", "l.png": "-> pic.png", "e/": ""})
	const index = "# kept\n[[tensor]]\nname = 't'\ndtype = 'uint8'\nshape = [3]\nfile = 't.bin'\ninner = []\n"
	tensors := tree(t, map[string]string{"index.toml": index, "t.bin": "abc"})
	opts := noop
	opts.Misc, opts.TensorData = misc, tensors
	opts.AddSelfTests = []pack.Test{{Inputs: []pack.TestValue{{Name: "x", From: "@tensor_data/t"}}}}
	opts.AddExamples = []pack.Test{{Inputs: []pack.TestValue{{Name: "x", From: "@misc/pic.png"}}}}
	c := open(t, opts, dir)
	wantListing(t, c, "carton.toml", "misc/l.png", "misc/pic.png", "model/a", "tensor_data/index.toml", "tensor_data/t.bin")
	if read(t, c, carton.IndexName) != index {
		t.Error("index.toml is not as it was")
	}
	if len(c.Info.Inputs) != 1 || c.Info.Inputs[0].Shape.String() != "[3]" || c.Info.SelfTests[0].Inputs["x"] != "@tensor_data/t" {
		t.Errorf("got %+v", c.Info)
	}
	if diff := cmp.Diff([]string{"misc/e/"}, c.LeftOut); diff != "" {
		t.Error(diff)
	}
	opts.AddSelfTests[0].Inputs[0].From = "@tensor_data/none"
	refused(t, opts, carton.ErrFormat, "self_test 1", dir)
	opts.TensorData = misc
	refused(t, opts, carton.ErrFormat, "index.toml", dir)
}

func TestAFileThatChangesIsRefused(t *testing.T) {
	dir := tree(t, map[string]string{"a": "0123456789", "b": "x"})
	c := open(t, noop, dir)
	for _, content := range []string{"0123456780", "012345678", "01234567890"} {
		write(t, dir, map[string]string{"a": content})
		r, err := c.Open(t.Context(), "model/a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.ReadAll(r); !errors.Is(err, carton.ErrChecksum) {
			t.Errorf("%q: got %v, want ErrChecksum", content, err)
		}
		r.Close()
	}
	write(t, dir, map[string]string{"a": "9876543210"})
	name := filepath.Join(t.TempDir(), "m.carton")
	if err := carton.Assemble(t.Context(), name, c, carton.AssembleOptions{}); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("assembling: got %v, want ErrChecksum", err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("a carton was written")
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(t.Context(), "model/a"); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("a folder in its place: got %v, want ErrChecksum", err)
	}
}

// A file that grows or shrinks between being listed and being hashed is caught
// while it is hashed.
func TestAFileThatChangesWhileItIsHashed(t *testing.T) {
	for what, content := range map[string]string{"has grown": strings.Repeat("y", 3<<20), "has shrunk": "y"} {
		dir := tree(t, map[string]string{"a": strings.Repeat("x", 2<<20)})
		opts := noop
		opts.Progress = func(e progress.Event) {
			if e.State == progress.Started {
				write(t, dir, map[string]string{"a": content})
			}
		}
		refused(t, opts, carton.ErrChecksum, what, dir)
	}
}

func TestEveryFileIsHashedOnceAndToldOf(t *testing.T) {
	dir := tree(t, map[string]string{"a": strings.Repeat("x", 3<<20), "b": "", "l": "-> a"})
	counts := map[string]int{}
	var last progress.Event
	opts := noop
	opts.Concurrency = 1
	opts.Progress = func(e progress.Event) {
		counts[e.Name+" "+e.State.String()]++
		if e.Name == "model/a" {
			last = e
		}
	}
	open(t, opts, dir)
	want := map[string]int{
		"model/a started": 1, "model/a moving": 3, "model/a finished": 1, "model/b started": 1, "model/b finished": 1,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	if last.Done != 3<<20 || last.Total != 3<<20 {
		t.Errorf("got %d of %d, want %d", last.Done, last.Total, 3<<20)
	}
}

func TestAnEndedContextEndsPacking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	opts := noop
	opts.Progress = func(progress.Event) { cancel() }
	dir := tree(t, map[string]string{"a": strings.Repeat("x", 8<<20)})
	if _, err := pack.Open(ctx, []string{dir}, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
