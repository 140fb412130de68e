package pack_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/google/go-cmp/cmp"
)

// file writes one file into a folder of the test.
func file(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTorchScript(t *testing.T) {
	fixture := testenv.Foreign(t, "carton/test_model.pt")
	c := open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{RequiredFrameworkVersion: "=2.0.1"}}}, fixture)
	wantListing(t, c, "carton.toml", "model/model.pt", "tensor_data/index.toml")
	if got := c.Filled[0]; got.Value != "torchscript" || !strings.Contains(got.From, "test_model.pt") {
		t.Errorf("got %v, want the runner", got)
	}
	// What the file can't tell is asked for, and what it can is not.
	refused(t, pack.Options{}, pack.ErrOptions, "nothing says required_framework_version", fixture)
	// For another runner it is a file like any other.
	wantListing(t, open(t, noop, fixture), "carton.toml", "model/test_model.pt", "tensor_data/index.toml")

	junk := file(t, "state.pt", []byte("no archive"))
	c = open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "torchscript", RequiredFrameworkVersion: "=2.0.1"}}}, junk)
	wantWarnings(t, c, "state.pt is not a TorchScript archive")
	wantListing(t, c, "carton.toml", "model/model.pt", "tensor_data/index.toml")
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{RequiredFrameworkVersion: "=2.0.1"}}}, pack.ErrOptions, "nothing says runner_name", junk)
	// torch.save writes the same zip, and no code.
	saved := modeltest.TorchZip("m", "little", modeltest.Record{Name: "data.pkl", Data: []byte("x")})
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{RequiredFrameworkVersion: "=2.0.1"}}}, pack.ErrOptions, "nothing says runner_name", file(t, "m.pt", saved))
}

func TestWebAssembly(t *testing.T) {
	c := open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{RequiredFrameworkVersion: "=0.0.1"}}}, testenv.Foreign(t, "carton/model.wasm"))
	wantListing(t, c, "carton.toml", "model/model.wasm", "tensor_data/index.toml")
	wantWarnings(t, c)
	if c.Info.Runner.Name != "wasm" {
		t.Errorf("got the runner %s, want wasm", c.Info.Runner.Name)
	}
	core := file(t, "any name.wasm", []byte("\x00asm\x01\x00\x00\x00"))
	c = open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{RequiredFrameworkVersion: "=0.0.1"}}}, core)
	wantWarnings(t, c, "is a core module")
	wantListing(t, c, "carton.toml", "model/model.wasm", "tensor_data/index.toml")
	wantWarnings(t, open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "wasm", RequiredFrameworkVersion: "*"}}}, file(t, "x.wasm", []byte("x"))), "is not a WebAssembly module")
}

func TestSafetensors(t *testing.T) {
	good := modeltest.Safetensors(t, nil, modeltest.Tensor{Name: "w", DType: "F32", Shape: []int64{1}, Data: make([]byte, 4)})
	one, two := file(t, "model-1.safetensors", good), file(t, "model-2.safetensors", good)
	c := open(t, noop, one, two)
	wantListing(t, c, "carton.toml", "model/model-1.safetensors", "model/model-2.safetensors", "tensor_data/index.toml")
	refused(t, noop, carton.ErrInsecurePath, "occurs twice", one, file(t, "model-1.safetensors", good))

	cut := file(t, "cut.safetensors", good[:len(good)-1])
	refused(t, noop, carton.ErrFormat, "model/cut.safetensors", cut)
	forced := noop
	forced.AllowInvalid = true
	wantWarnings(t, open(t, forced, cut), "model/cut.safetensors")
	refused(t, noop, carton.ErrFormat, "sub/cut.safetensors", tree(t, map[string]string{"sub/cut.safetensors": "x"}))

	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 10\n"
	for _, name := range []string{"weights.bin", "model.safetensors"} {
		refused(t, noop, carton.ErrFormat, "model/"+name+": is a git-lfs pointer", tree(t, map[string]string{name: pointer}))
	}
}

func TestPT2(t *testing.T) {
	archive := modeltest.Archive{
		Storages: [][]byte{make([]byte, 16)},
		Models: []modeltest.Model{{
			Name:    "model",
			Torch:   "2.9.1+cpu",
			Weights: []modeltest.Weight{{Name: "w", DType: modeltest.Float, Shape: []int64{4}, Stride: []int64{1}, Param: true}},
			Inputs:  []modeltest.Value{{Name: "x", DType: modeltest.Float, Shape: []any{"s77", 3}}, {Name: "n", DType: modeltest.Long, Shape: []any{}}},
			Outputs: []modeltest.Value{{Name: "y", DType: modeltest.Double, Shape: []any{"s77"}}},
		}},
	}
	name := file(t, "net.pt2", modeltest.PT2(t, archive))
	c := open(t, noopUnsaid, name)
	wantListing(t, c, "carton.toml", "model/net.pt2", "tensor_data/index.toml")
	wantWarnings(t, c)
	want := []pack.Fact{
		{Field: "runner.required_framework_version", Value: "=2.9.1", From: "torch_version of net.pt2, 2.9.1+cpu"},
		{Field: "input", Value: `x float32 ["s77", 3]`, From: "the model definition in net.pt2"},
		{Field: "input", Value: "n int64 []", From: "the model definition in net.pt2"},
		{Field: "output", Value: `y float64 ["s77"]`, From: "the model definition in net.pt2"},
		{Field: "runner.runner_compat_version", Value: "1", From: "assumed: the runner is not known here"},
	}
	if diff := cmp.Diff(want, c.Filled); diff != "" {
		t.Error(diff)
	}
	if got := c.Info.Inputs[0].Shape.String(); got != `["s77", 3]` {
		t.Errorf("got %s", got)
	}
	// The framework of other runners is not torch, and what is given counts.
	refused(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "python"}}}, pack.ErrOptions, "required_framework_version", name)
	said := pack.Options{Info: carton.Info{Inputs: []carton.TensorSpec{{Name: "z", DType: carton.Uint8, Shape: carton.Shape{Symbol: "*"}}}, Runner: carton.Runner{Name: "x", RequiredFrameworkVersion: "~2.9"}}}
	c = open(t, said, name)
	if c.Info.Runner.RequiredFrameworkVersion != "~2.9" || len(c.Info.Inputs) != 1 || len(c.Info.Outputs) != 0 {
		t.Errorf("got %+v, want what was given", c.Info)
	}
	// In a folder it tells the same; two archives tell nothing.
	dir := tree(t, map[string]string{"sub/net.pt2": string(modeltest.PT2(t, archive))})
	if c := open(t, noopUnsaid, dir); len(c.Info.Inputs) != 2 {
		t.Errorf("got %+v, want the inputs", c.Info)
	}
	write(t, dir, map[string]string{"other.pt2": string(modeltest.PT2(t, archive))})
	c = open(t, noop, dir)
	wantWarnings(t, c, "2 PT2 archives")
}

// Where a model was compiled for is where it runs; noop has no framework.
func TestCompiledModels(t *testing.T) {
	const folder = "data/aotinductor/"
	archive := func(metadata ...string) string {
		a := modeltest.Archive{Records: []modeltest.Record{}}
		for i, text := range metadata {
			name := folder + "m" + strings.Repeat("x", i) + "/"
			a.Records = append(a.Records, modeltest.Record{Name: name + "c.wrapper_metadata.json", Data: []byte(text)}, modeltest.Record{Name: name + "c.wrapper.so", Data: []byte("so")})
		}
		return file(t, "net.pt2", modeltest.PT2(t, a))
	}
	linux := `{"AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64"}`
	mac := `{"AOTI_DEVICE_KEY": "mps", "AOTI_PLATFORM": "darwin", "AOTI_MACHINE": "arm64"}`
	for _, c := range []struct {
		name string
		want []string
	}{
		{archive(linux), []string{"x86_64-unknown-linux-gnu"}},
		{archive(mac, linux, linux), []string{"aarch64-apple-darwin", "x86_64-unknown-linux-gnu"}},
		{archive(linux, `{"AOTI_DEVICE_KEY": "cpu"}`), nil},
		{archive(`{"AOTI_PLATFORM": "linux", "AOTI_MACHINE": "riscv64"}`), nil},
	} {
		got := open(t, noop, c.name)
		if diff := cmp.Diff(c.want, got.Info.RequiredPlatforms); diff != "" {
			t.Error(diff)
		}
		if v := got.Info.Runner.RequiredFrameworkVersion; v != "*" {
			t.Errorf("got the framework version %s, want *", v)
		}
	}
	c := open(t, pack.Options{Info: carton.Info{RequiredPlatforms: []string{"wasm32-unknown-unknown"}, Runner: carton.Runner{Name: "noop"}}}, archive(linux))
	if len(c.Info.RequiredPlatforms) != 1 || c.Info.RequiredPlatforms[0] != "wasm32-unknown-unknown" {
		t.Errorf("got %v, want what was given", c.Info.RequiredPlatforms)
	}
	c = open(t, noop, testenv.Foreign(t, "pt2/torch-2.14/aoti_lin.pt2"))
	if got := c.Info.RequiredPlatforms; len(got) != 1 || got[0] != "x86_64-unknown-linux-gnu" {
		t.Errorf("torch's own: got %v", got)
	}
	// A definition runs anywhere.
	c = open(t, noop, testenv.Foreign(t, "pt2/torch-2.14/lin.pt2"))
	if len(c.Info.RequiredPlatforms) > 0 || c.Info.Runner.RequiredFrameworkVersion != "*" {
		t.Errorf("got %+v", c.Info)
	}
}

// What a runner lacks is one warning, whatever it lacks, and says where it comes from.
func TestWhatRunnersExpect(t *testing.T) {
	dir := tree(t, map[string]string{"main.py": "x"})
	opts := map[string]any{"entrypoint_package": "main", "entrypoint_fn": "load"}
	c := open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "python", RequiredFrameworkVersion: "=3.11", Opts: opts}}}, dir)
	wantWarnings(t, c, "the runner python expects model/.carton/carton.lock, which is not there")
	if len(c.Hints) != 1 || !strings.Contains(c.Hints[0].String(), "Carton's own packer makes it of requirements.txt") {
		t.Errorf("got the hints %q", c.Hints)
	}
	for _, name := range []string{"Python", "rustbert", "Torch-Script"} {
		wantWarnings(t, open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: name, RequiredFrameworkVersion: "*"}}}, dir), "the runner "+name+" is not known")
	}
	wantWarnings(t, open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "my-runner", RequiredFrameworkVersion: "*"}}}, dir))
}

// noopUnsaid is a runner that nobody knows, whose framework may be torch.
var noopUnsaid = pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "torch"}}}

func TestPT2ThatCanNotBeDeclared(t *testing.T) {
	model := func(inputs ...modeltest.Value) modeltest.Archive {
		return modeltest.Archive{Models: []modeltest.Model{{Name: "m", Inputs: inputs}}}
	}
	two := model()
	two.Models = append(two.Models, modeltest.Model{Name: "n"})
	for what, c := range map[string]struct {
		archive modeltest.Archive
		want    string
	}{
		"type":       {model(modeltest.Value{Name: "x", DType: modeltest.BFloat16, Shape: []any{1}}), "x is of the type BF16"},
		"two models": {two, "holds 2 models"},
	} {
		c2 := open(t, noopUnsaid, file(t, "m.pt2", modeltest.PT2(t, c.archive)))
		if len(c2.Warnings) != 1 || !strings.Contains(c2.Warnings[0], c.want) || len(c2.Info.Inputs) != 0 {
			t.Errorf("%s: got %q, %v, want %q", what, c2.Warnings, c2.Info.Inputs, c.want)
		}
	}
	refused(t, noop, carton.ErrFormat, "model/m.pt2", file(t, "m.pt2", []byte("no zip")))
	forced := noop
	forced.AllowInvalid = true
	wantWarnings(t, open(t, forced, file(t, "m.pt2", []byte("no zip"))), "model/m.pt2")
}

func TestARealPT2Archive(t *testing.T) {
	c := open(t, pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "aoti", RequiredFrameworkVersion: "=2.7.0"}}}, testenv.Foreign(t, "pt2/ep1.pt2"))
	wantListing(t, c, "carton.toml", "model/ep1.pt2", "tensor_data/index.toml")
}

// TestShapesOfTorch: a dimension that torch calls by one symbol has its name, any
// other may have any length.
func TestShapesOfTorch(t *testing.T) {
	for name, want := range map[string][]string{
		"lin_dyn": {`x float32 ["s77", 8]`, `linear_1 float32 ["s77", 4]`},
		"derived": {`x float32 ["*", 4]`, `clone float32 ["*", 4]`},
		"expr": {
			`x float32 ["s77", "s27"]`, `y float32 ["s17", "s27"]`, `cat float32 ["*", "s27"]`, `reshape float32 ["*"]`,
			`slice_2 float32 ["s77", "*"]`, `cat_1 float32 ["*", "s27"]`, `nonzero int64 ["*", 2]`,
		},
		"u32": {`a uint32 [2]`, `b uint64 [2]`, `c uint16 [2]`, `add int64 [2]`, `c uint16 [2]`},
		"uni": {`x float32 [1, 2]`, `add float32 [1, 2]`},
	} {
		t.Run(name, func(t *testing.T) {
			opts := noop
			opts.Strict = true
			c := open(t, opts, testenv.Foreign(t, "pt2/torch-2.14/"+name+".pt2"))
			var got []string
			for _, s := range slices.Concat(c.Info.Inputs, c.Info.Outputs) {
				got = append(got, s.Name+" "+string(s.DType)+" "+s.Shape.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A model that lacks a shard which its index lists is not packed.
func TestAShardThatIsMissing(t *testing.T) {
	weights := string(modeltest.Safetensors(t, nil, modeltest.Tensor{Name: "a", DType: "U8", Shape: []int64{1}, Data: []byte{1}}))
	files := map[string]string{
		"sub/m-1.safetensors": weights, "sub/m.safetensors.index.json": `{"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}`,
	}
	refused(t, noop, carton.ErrFormat, "missing are 1 of the 2 shards that it lists: m-2.safetensors", tree(t, files))
	allowed := noop
	allowed.AllowInvalid = true
	wantWarnings(t, open(t, allowed, tree(t, files)), "m-2.safetensors")
	cache := map[string]string{
		"blobs/1": weights, "blobs/2": files["sub/m.safetensors.index.json"],
		"snap/m-1.safetensors": "-> ../blobs/1", "snap/m.safetensors.index.json": "-> ../blobs/2",
	}
	refused(t, noop, carton.ErrFormat, "model/snap/m.safetensors.index.json", tree(t, cache))
	cache["snap/m-2.safetensors"] = "-> ../blobs/3"
	cache["blobs/3"] = weights[:len(weights)-1]
	refused(t, noop, carton.ErrFormat, "model/snap/m-2.safetensors", tree(t, cache))
	torch := map[string]string{"pytorch_model.bin.index.json": `{"metadata":null,"weight_map":{"a":"pytorch_model-1.bin"}}`, "x": "x"}
	refused(t, noop, carton.ErrFormat, "pytorch_model-1.bin", tree(t, torch))
	files["sub/m-2.safetensors"] = "-> m-1.safetensors"
	wantWarnings(t, open(t, noop, tree(t, files)))
}
