package carton_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const fullInfo = `spec_version = 1
model_name = "m"
short_description = "s"
model_description = "d"
license = "MIT"
repository = "https://example.com/r"
homepage = "https://example.com"
required_platforms = ["x86_64-unknown-linux-gnu"]

[[input]]
name = "x"
dtype = "float32"
shape = ["batch", 3, "*"]
description = "an input"
internal_name = "ns/x:0"

[[input]]
name = "any"
dtype = "string"
shape = "*"

[[output]]
name = "y"
dtype = "int64"
shape = []

[[self_test]]
name = "t"
description = "td"
inputs = { x = "@tensor_data/a" }
expected_out = { y = "@tensor_data/b" }

[[example]]
name = "e"
description = "ed"
inputs = { x = "@misc/a.png" }
sample_out = { y = "@tensor_data/b" }

[runner]
runner_name = "python"
required_framework_version = ">=3.8, <4"
runner_compat_version = 9223372036854775807

[runner.opts]
threads = -4
scale = 0.5
entry = "main"
fast = true
`

func TestParseInfo(t *testing.T) {
	got, err := carton.ParseInfo([]byte(fullInfo))
	if err != nil {
		t.Fatal(err)
	}
	compat := uint64(1<<63 - 1)
	want := &carton.Info{
		SpecVersion: 1, ModelName: "m", ShortDescription: "s", ModelDescription: "d", License: "MIT",
		Repository: "https://example.com/r", Homepage: "https://example.com",
		RequiredPlatforms: []string{"x86_64-unknown-linux-gnu"},
		Inputs: []carton.TensorSpec{
			{
				Name: "x", DType: carton.Float32, Description: "an input", InternalName: "ns/x:0",
				Shape: carton.Shape{Dims: []carton.Dim{{Symbol: "batch"}, {Size: 3}, {Symbol: "*"}}},
			},
			{Name: "any", DType: carton.String, Shape: carton.Shape{Symbol: "*"}},
		},
		Outputs: []carton.TensorSpec{{Name: "y", DType: carton.Int64, Shape: carton.Shape{Dims: []carton.Dim{}}}},
		SelfTests: []carton.Test{{
			Name: "t", Description: "td",
			Inputs: map[string]string{"x": "@tensor_data/a"}, Outputs: map[string]string{"y": "@tensor_data/b"},
		}},
		Examples: []carton.Test{{
			Name: "e", Description: "ed",
			Inputs: map[string]string{"x": "@misc/a.png"}, Outputs: map[string]string{"y": "@tensor_data/b"},
		}},
		Runner: carton.Runner{
			Name: "python", RequiredFrameworkVersion: ">=3.8, <4", CompatVersion: &compat,
			Opts: map[string]any{"threads": int64(-4), "scale": 0.5, "entry": "main", "fast": true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, want := range []string{`["batch", 3, "*"]`, `"*"`} {
		if s := got.Inputs[i].Shape.String(); s != want {
			t.Errorf("shape: got %s, want %s", s, want)
		}
	}
	if s := got.Outputs[0].Shape.String(); s != "[]" {
		t.Errorf("shape: got %s, want []", s)
	}
}

// What is written is what was read, in the order of the specification.
func TestMarshalInfo(t *testing.T) {
	info, err := carton.ParseInfo([]byte(fullInfo))
	if err != nil {
		t.Fatal(err)
	}
	got, err := info.Marshal()
	// Only the options are sorted.
	before, _, _ := strings.Cut(fullInfo, "[runner.opts]")
	want := before + "[runner.opts]\nentry = \"main\"\nfast = true\nscale = 0.5\nthreads = -4\n"
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	info.ModelDescription = "two\nlines\n"
	info.Extra = "\n[mine]\nx = 1\n"
	info.Categories = map[string]string{"model/a b": "code"}
	got, err = info.Marshal()
	for _, want := range []string{"model_description = '''\ntwo\nlines\n'''\nlicense", "\n\n[mine]\nx = 1\n\n[categories]\n\"model/a b\" = \"code\"\n"} {
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("got %s, %v, want %s in it", got, err, want)
		}
	}
	for key, change := range map[string]func(*carton.Info){
		"license":        func(i *carton.Info) { i.License = "\xff" },
		"input.x.shape":  func(i *carton.Info) { i.Inputs[0].Shape.Dims[0].Symbol = "\xff" },
		"runner.opts.x":  func(i *carton.Info) { i.Runner.Opts = map[string]any{"x": []int{1}} },
		"opts.\"\\xff\"": func(i *carton.Info) { i.Runner.Opts = map[string]any{"\xff": true} },
	} {
		info, _ := carton.ParseInfo([]byte(fullInfo))
		change(info)
		if _, err := info.Marshal(); !errors.Is(err, carton.ErrFormat) || !strings.Contains(err.Error(), key) {
			t.Errorf("got %v, want an error about %s", err, key)
		}
	}
}

// Every value is a field with a key of its own.
func TestFieldsOfInfo(t *testing.T) {
	info, err := carton.ParseInfo([]byte(fullInfo))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range info.Fields() {
		got = append(got, f.Key+" = "+f.TOML)
		if f.Key == "required_platforms" && f.Text != "x86_64-unknown-linux-gnu" || f.Key == "license" && f.Text != "MIT" {
			t.Errorf("%s: got the text %s", f.Key, f.Text)
		}
	}
	want := strings.Split(`spec_version = 1
model_name = "m"
short_description = "s"
model_description = "d"
license = "MIT"
repository = "https://example.com/r"
homepage = "https://example.com"
required_platforms = ["x86_64-unknown-linux-gnu"]
input.x.dtype = "float32"
input.x.shape = ["batch", 3, "*"]
input.x.description = "an input"
input.x.internal_name = "ns/x:0"
input.any.dtype = "string"
input.any.shape = "*"
output.y.dtype = "int64"
output.y.shape = []
self_test.t = {}
self_test.t.description = "td"
self_test.t.inputs.x = "@tensor_data/a"
self_test.t.expected_out.y = "@tensor_data/b"
example.e = {}
example.e.description = "ed"
example.e.inputs.x = "@misc/a.png"
example.e.sample_out.y = "@tensor_data/b"
runner.runner_name = "python"
runner.required_framework_version = ">=3.8, <4"
runner.runner_compat_version = 9223372036854775807
runner.opts.entry = "main"
runner.opts.fast = true
runner.opts.scale = 0.5
runner.opts.threads = -4`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The public carton, as its authors describe it.
func TestReadInfoOfReferenceCarton(t *testing.T) {
	src, err := carton.Open(testenv.Foreign(t, "carton/test.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	info, err := carton.ReadInfo(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if info.ModelName != "Test Model" || info.Runner.Name != "python" || info.Runner.RequiredFrameworkVersion != "=3.11" ||
		info.Runner.CompatVersion == nil || *info.Runner.CompatVersion != 1 ||
		len(info.Inputs) != 7 || len(info.Outputs) != 1 || len(info.SelfTests) != 1 || len(info.Examples) != 1 ||
		info.Runner.Opts["entrypoint_package"] != "main" {
		t.Errorf("got %+v", info)
	}
	index, err := tensorIndex(t, src)
	if err != nil {
		t.Fatal(err)
	}
	want := []carton.Tensor{
		{Name: "_tensor_1", DType: carton.Float32, Shape: []int64{5}, File: "tensor_0.bin"},
		{Name: "_tensor_0", DType: carton.String, Shape: []int64{3}, File: "tensor_1.toml"},
		{Name: "_tensor_2", DType: carton.Uint32, Shape: []int64{5}, File: "tensor_2.bin"},
		{Name: "_tensor_3", DType: carton.Int64, Shape: []int64{}, File: "tensor_3.bin"},
	}
	if diff := cmp.Diff(want, index.Tensors); diff != "" {
		t.Error(diff)
	}
	tensor, ok := index.Lookup("_tensor_2")
	if !ok || tensor.Path() != "tensor_data/tensor_2.bin" || tensor.Elements() != 5 || tensor.DType.Size() != 4 {
		t.Errorf("got %+v, %t", tensor, ok)
	}
	if _, ok := index.Lookup("_tensor_4"); ok {
		t.Error("there is a tensor that is not there")
	}
}

// A version requirement is one in carton.toml if Rust's semver 1.x takes it.
func TestCheckVersionReq(t *testing.T) {
	for _, s := range []string{
		"*", "x", "X", " *", "* ", "1", "1.2", "1.2.3", "=3.11", "=1.12.1", "2.0.x", "2.x", "2.X.*", "2.*.*", "1.*", ">=1.0, <2.0", ">=1.0,<2.0",
		"~1.2", "^1", "^ 1.2", ">= 1.2.3", "> 1", "<=2", "  1  ", ">=1.0 , <2.0", "1.2.3-alpha.1", "1.2.3-0.3.7", "=1.2.3-x.7.z.92", "1.2.3-alpha-x",
		"1.2.3+build.5", "1.2.3-rc.1+007", "0.0.0", "18446744073709551615", "=2.1.0, 1", ">1.*", "1.2.3-0a", "1.2.3--",
	} {
		if err := carton.CheckVersionReq(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{
		"", " ", ">=1.0 <2.0", "1 || 2", "1.2.3.4", "a", "v1", "==1", "=>1", "1.", ".1", "1..2", "1.*.3", "*.1", "*, 1", "1, *", "x.1", "* 1",
		"1,", ",1", "1,,2", "01", "1.02", "1.2.03", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3+a..b", "1.2-alpha", "1.x-alpha", "1.2.x-alpha", "1-2",
		"18446744073709551616", "99999999999999999999999", ">", "~", "1.2.3 -alpha", "1.2.3-\u00e9", "1\n", "\t1", "1 2", "!=1", "~=1.2", "1;2", "1.2.3-alpha.",
	} {
		if err := carton.CheckVersionReq(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	many := "1"
	for range 31 {
		many += ",1"
	}
	if err := carton.CheckVersionReq(many); err != nil {
		t.Errorf("32 versions: %v", err)
	}
	if err := carton.CheckVersionReq(many + ",1"); err == nil {
		t.Error("33 versions were accepted")
	}
}

// Licences are checked for a warning only; see testdata/check for its text.
func TestLicenses(t *testing.T) {
	warned := func(license string) bool {
		t.Helper()
		toml := minimalInfo[:len("spec_version = 1\n")] + "license = '" + license + "'\n" + minimalInfo[len("spec_version = 1\n"):]
		src, err := carton.OpenFS(folderOf(carton.InfoName, toml, carton.IndexName, emptyIndex, "model/m", ""))
		if err != nil {
			t.Fatal(err)
		}
		found, err := carton.Check(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		return len(found) > 0
	}
	for _, s := range []string{
		"MIT", "apache-2.0", "Apache-2.0 OR MIT", "(MIT AND BSD-3-Clause) OR Apache-2.0", "GPL-2.0-only WITH Classpath-exception-2.0", "MPL-1.1+",
		"LicenseRef-openrail", "DocumentRef-spdx:LicenseRef-1.x", "((MIT))", "(MIT)AND(ISC)", "CC-BY-NC-SA-4.0", "",
		"CC-BY-NC-SA-2.5", "BSD-3-Clause-LBNL", "llama3.1", "other",
	} {
		if warned(s) {
			t.Errorf("%q: got a warning", s)
		}
	}
	for _, s := range []string{
		"Apache 2.0", "MIT/Apache-2.0", "MIT, ISC", "MIT AND", "AND MIT", "MIT OR OR ISC", "(MIT", "MIT)", "()", "MIT WITH", "MIT WITH (a)",
		"MIT ISC", "LicenseRef-", "DocumentRef-a:MIT", "Ref:LicenseRef-a", "MIT++", "https://opensource.org/licenses/MIT", "mit and isc", " ",
		"DocumentRef-:LicenseRef-a", "LicenseRef-a_b", "AND", "OR OR OR", "MIT AND OR", "WITH WITH a", "MIT WITH WITH", "MIT WITH OR", "MIT AND WITH",
		"(MIT) WITH a", "MIT WITH a WITH b", "GPL-2.0 +", "LicenseRef-a+", "MIT WITH a+", "MIT (ISC)", ") MIT (",
	} {
		if !warned(s) {
			t.Errorf("%q: no warning", s)
		}
	}
	deep := ""
	for range 20_000 {
		deep += "("
	}
	if !warned(deep) {
		t.Error("20,000 parentheses: no warning")
	}
}

// FuzzParseInfo: whatever the bytes, no crash, and one line of error; what is
// accepted has what readers rely on.
func FuzzParseInfo(f *testing.F) {
	for _, s := range []string{fullInfo, minimalInfo, "", "spec_version = 2", "[[input]]\n", "a.b.c = [[{}]]", "spec_version = 1\nrunner = {}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		info, err := carton.ParseInfo(b)
		if err != nil {
			oneLine(t, err)
			return
		}
		if info.SpecVersion != 1 || info.Runner.Name == "" || carton.CheckVersionReq(info.Runner.RequiredFrameworkVersion) != nil {
			t.Errorf("accepted %+v", info)
		}
		written, err := info.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := carton.ParseInfo(written)
		if err != nil {
			t.Fatalf("%v of\n%s", err, written)
		}
		if diff := cmp.Diff(info.Fields(), again.Fields()); diff != "" {
			t.Errorf("written and read again:\n%s", diff)
		}
		for _, s := range append(info.Inputs, info.Outputs...) {
			if s.Name == "" || s.DType.Size() == 0 && s.DType != carton.String {
				t.Errorf("accepted %+v", s)
			}
			for _, d := range s.Shape.Dims {
				if d.Size < 0 || d.Symbol != "" && d.Size != 0 {
					t.Errorf("accepted %+v", d)
				}
			}
		}
	})
}

// FuzzParseTensorIndex is the same for tensor_data/index.toml.
func FuzzParseTensorIndex(f *testing.F) {
	for _, s := range []string{
		"tensor = []\n", "[[tensor]]\nname = 't'\ndtype = 'float32'\nshape = [2, 3]\nfile = 't.bin'\ninner = []\n",
		"[[tensor]]\nname = 't'\ndtype = 'nested'\ninner = ['t']\n", "[[tensor]]\nname = 's'\ndtype = 'string'\nshape = []\nfile = 's.toml'\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		index, err := carton.ParseTensorIndex(b)
		if err != nil {
			oneLine(t, err)
			return
		}
		for _, tensor := range index.Tensors {
			if tensor.Elements() < 0 || tensor.Elements()*tensor.DType.Size() < 0 {
				t.Errorf("%+v has a negative size", tensor)
			}
			if p := tensor.Path(); p != "" && carton.CheckPath(p) != nil || p == "" && tensor.DType != carton.Nested {
				t.Errorf("%+v has no good path", tensor)
			}
			if again, ok := index.Lookup(tensor.Name); !ok || again.Name != tensor.Name {
				t.Errorf("%+v is not found", tensor)
			}
		}
	})
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	for _, r := range err.Error() {
		if r < ' ' || r == 0x7f {
			t.Errorf("%q holds the control character %U", err, r)
		}
	}
}

// A table that the format does not have is read, and nothing in it is a fault.
func TestCategories(t *testing.T) {
	const info = "spec_version = 1\n[runner]\nrunner_name = \"noop\"\nrequired_framework_version = \"*\"\nrunner_compat_version = 1\n"
	for table, want := range map[string]map[string]string{
		"": nil,
		"[categories]\n\"model/a.py\" = \"weight\"\nno_path = \"no word\"\nn = 1\nx.y = \"z\"\n": {"model/a.py": "weight", "no_path": "no word"},
		"[[categories]]\nname = \"x\"\n": nil,
		"[categories]\n":                 nil,
	} {
		got, err := carton.ParseInfo([]byte(info + table))
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if diff := cmp.Diff(want, got.Categories); diff != "" {
			t.Errorf("%s: %s", table, diff)
		}
	}
}
