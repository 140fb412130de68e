package e2e

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: one tensor out of a large remote file costs that tensor and one
// header.

const (
	// tensorBeside is the most bytes of blobs that may travel beside the tensor.
	tensorBeside = 200_000
	// tensorRequests is the most requests, tokens apart.
	tensorRequests = 5
)

// tensorEntry is a tensor of a file that a test makes.
type tensorEntry struct {
	name, dtype string
	shape       []int
}

func (e tensorEntry) bytes() int {
	n := map[string]int{"F32": 4, "I64": 8, "BF16": 2, "U8": 1}[e.dtype]
	for _, d := range e.shape {
		n *= d
	}
	return n
}

// safetensors writes a file by hand, as the format's description has it.
func safetensors(seed string, entries ...tensorEntry) string {
	var parts []string
	size := 0
	for _, e := range entries {
		shape := strings.ReplaceAll(fmt.Sprint(e.shape), " ", ",")
		parts = append(parts, fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, e.name, e.dtype, shape, size, size+e.bytes()))
		size += e.bytes()
	}
	header := "{" + strings.Join(parts, ",") + "}"
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + random(seed, size)
}

// fetchedTensor is what tensors NAME -o FILE --format json prints.
type fetchedTensor struct {
	Name, DType, Member, Path, Reference, Digest, ModelHash string
	Shape                                                   []int
	Bytes                                                   int
	Verified                                                *bool
}

func tensorModel() *model {
	return newModel(map[string]string{
		"model/a.safetensors": safetensors("a", tensorEntry{"embed", "F32", []int{1000, 500}}, tensorEntry{"head", "F32", []int{250, 400}},
			tensorEntry{"half", "BF16", []int{100}}, tensorEntry{"rest", "U8", []int{3 << 20}}),
		"model/config.json":      `{"layers": 12}`,
		"tensor_data/index.toml": "tensor = []\n",
		"misc/README.md":         "# A model\n",
	})
}

func TestOneTensor(t *testing.T) {
	for _, layers := range []string{"raw", "tar"} {
		t.Run(layers, func(t *testing.T) { testOneTensor(t, layers) })
	}
}

func testOneTensor(t *testing.T, layers string) {
	u := newUser(t)
	m := tensorModel()
	m.write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{Auth: testregistry.Token, Users: users})
	u.login(t, s, "ada", "lovelace")
	ref := s.Host + "/org/m:1"
	u.push(t, "m.carton", ref, "--layers", layers)
	u.must(t, "push", "m.carton", "oci:layout:1", "--layers", layers)
	u.must(t, "pull", ref, "-o", "canonical.carton")
	u.must(t, "pull", ref, "--unpack", "folder")

	file := m.files["model/a.safetensors"]
	data := file[len(file)-2_000_000-400_000-200-3<<20:]
	want := data[2_000_000:2_400_000]

	s.Traffic.Reset()
	var got fetchedTensor
	u.json(t, &got, []string{"tensors", ref, "head", "-o", "head.npy", "--format", "json"})
	if got.Verified == nil || *got.Verified || got.DType != "F32" || got.Bytes != len(want) || got.Member != "model/a.safetensors" ||
		fmt.Sprint(got.Shape) != "[250 400]" || got.Path != "head.npy" || got.ModelHash != m.hash() {
		t.Errorf("got %+v", got)
	}
	requests := s.Traffic.Count("", testregistry.Any) - s.Traffic.Count("", testregistry.Tokens) - unauthorized(s)
	if out := s.Traffic.BlobBytesOut(); out > int64(len(want)+tensorBeside) || requests > tensorRequests {
		t.Errorf("a tensor of %d bytes took %d bytes and %d requests, want at most %d more and %d\n%s",
			len(want), out, requests, tensorBeside, tensorRequests, s.Traffic)
	} else {
		t.Logf("a tensor of %d bytes took %d bytes of blobs and %d requests", len(want), out, requests)
	}
	r := u.must(t, "tensors", ref, "head", "-o", "again.npy")
	if !strings.Contains(r.stderr, "unverified") {
		t.Errorf("got no word of unverified on standard error:\n%s", r.stderr)
	}

	for i, source := range []string{"m.carton", "canonical.carton", "./folder", "oci:layout:1"} {
		name := fmt.Sprintf("local%d.npy", i)
		u.must(t, "tensors", source, "head", "-o", name)
		wantSameFile(t, u, name, "head.npy")
	}
	npy, err := os.ReadFile(u.path("head.npy"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(npy), want) || len(npy) != len(want)+128 {
		t.Errorf("head.npy has %d bytes, or others than the member", len(npy))
	}
	openWithNumpy(t, u, "head.npy", want)
	checkOtherForm(t, u, ref, data)
}

// unauthorized counts the requests that were answered with where a token is to
// be had.
func unauthorized(s *testregistry.Server) int {
	n := 0
	for _, r := range s.Traffic.Requests() {
		if r.Status == 401 {
			n++
		}
	}
	return n
}

// checkOtherForm fetches what numpy has no type for.
func checkOtherForm(t *testing.T, u *user, ref, data string) {
	t.Helper()
	r := u.run(t, "tensors", ref, "half", "-o", "half.npy")
	if r.code == 0 || !strings.Contains(r.stderr, "BF16") || !strings.Contains(r.stderr, "hint: safetensors has it") {
		t.Errorf("BF16 as .npy: exit code %d\n%s", r.code, r.stderr)
	}
	if _, err := os.Lstat(u.path("half.npy")); err == nil {
		t.Error("half.npy is there")
	}
	u.must(t, "tensors", ref, "half", "-o", "half.safetensors")
	b, err := os.ReadFile(u.path("half.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(b), data[2_400_000:2_400_200]) || !strings.Contains(string(b), `"BF16"`) {
		t.Errorf("half.safetensors has %d bytes:\n%q", len(b), b)
	}
}

// openWithNumpy compares what numpy reads with the elements.
func openWithNumpy(t *testing.T, u *user, name, elements string) {
	t.Helper()
	python := numpyPython(t)
	first := math.Float32frombits(binary.LittleEndian.Uint32([]byte(elements)))
	script := `import sys, numpy
a = numpy.load(sys.argv[1], allow_pickle=False)
assert a.shape == (250, 400), a.shape
assert a.dtype == numpy.dtype("<f4"), a.dtype
assert a.flags["C_CONTIGUOUS"]
assert a[0, 0] == numpy.float32(sys.argv[2]) or a[0, 0] != a[0, 0], a[0, 0]
sys.stdout.buffer.write(a.tobytes())
`
	r := u.exec(t, python, "-c", script, u.path(name), fmt.Sprintf("%.9g", first))
	if r.code != 0 || r.stdout != elements {
		t.Errorf("numpy: exit code %d, %d bytes, want %d\n%s", r.code, len(r.stdout), len(elements), r.stderr)
	}
}

// numpyPython returns a Python that has numpy: the first on PATH, or the
// system's, for which Debian packages it.
func numpyPython(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import numpy").Run() == nil {
			return python
		}
	}
	testenv.NotChecked(t, "numpy is not installed")
	return ""
}

// Every shard's header is one request, and the index says which shard to ask.
func TestAHundredShards(t *testing.T) {
	const shards = 100
	files, weightMap := map[string]string{}, []string{}
	for i := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards)
		tensor := fmt.Sprintf("layers.%d.weight", i)
		files["model/"+name] = safetensors(name, tensorEntry{tensor, "F32", []int{30_000}})
		weightMap = append(weightMap, fmt.Sprintf("%q:%q", tensor, name))
	}
	files["model/model.safetensors.index.json"] = `{"metadata":{},"weight_map":{` + strings.Join(weightMap, ",") + `}}`
	u := newUser(t)
	newModel(files).write(t, u.path("m.carton"))
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/m:1"
	u.must(t, "push", "m.carton", ref)

	s.Traffic.Reset()
	var d struct {
		Parameters *int64
		Precision  string
	}
	u.json(t, &d, []string{"inspect", ref, "--format", "json"})
	if d.Parameters == nil || *d.Parameters != shards*30_000 || d.Precision != "float32" {
		t.Errorf("got %+v", d)
	}
	if n := s.Traffic.Count("", testregistry.Any); n > shards+6 {
		t.Errorf("inspect: took %d requests, want at most %d\n%s", n, shards+6, s.Traffic)
	} else {
		t.Logf("inspect of %d shards took %d requests", shards, n)
	}

	s.Traffic.Reset()
	r := u.must(t, "tensors", ref, "--format", "json")
	if n := strings.Count(r.stdout, `"name"`); n != shards || s.Traffic.Count("", testregistry.Any) > shards+6 {
		t.Errorf("tensors: listed %d in %d requests\n%s", n, s.Traffic.Count("", testregistry.Any), s.Traffic)
	}

	s.Traffic.Reset()
	u.must(t, "tensors", ref, "layers.42.weight", "-o", "t.npy")
	if n, out := s.Traffic.Count("", testregistry.Any), s.Traffic.BlobBytesOut(); n > tensorRequests+1 || out > 120_000+tensorBeside {
		t.Errorf("one tensor: took %d requests and %d bytes\n%s", n, out, s.Traffic)
	}
}
