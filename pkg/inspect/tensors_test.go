package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const dataIndex = `[[tensor]]
name = "x"
dtype = "float32"
shape = [2, 3]
file = "x.bin"
inner = []

[[tensor]]
name = "words"
dtype = "string"
shape = [1]
file = "words.toml"
inner = []

[[tensor]]
name = "both"
dtype = "nested"
inner = ["x", "words"]
`

func TestTensors(t *testing.T) {
	src := cartontest.New(map[string][]byte{
		"model/b.safetensors":       safetensorsOf(0, entry{"b.2", "BF16", []int64{4}}, entry{"b.1", "F32", []int64{}}),
		"model/a/A.SafeTensors":     safetensorsOf(0, entry{"a", "U8", []int64{0, 7}}),
		"model/copy.safetensors":    safetensorsOf(0, entry{"a", "U8", []int64{0, 7}}),
		"model/blobs/abc":           safetensorsOf(0, entry{"linked", "I64", []int64{1}}),
		"model/broken.safetensors":  safetensorsOf(0, entry{"c", "F32", []int64{3}})[:40],
		"model/longer.safetensors":  append(safetensorsOf(0, entry{"c", "F32", []int64{3}}), 0),
		"model/pointer.safetensors": []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"),
		"misc/m.safetensors":        safetensorsOf(0, entry{"m", "F16", []int64{2}}),
		"tensor_data/index.toml":    []byte(dataIndex),
		"tensor_data/x.bin":         make([]byte, 24),
		"tensor_data/words.toml":    []byte("data = [\"w\"]\n"),
	}, map[string]string{"model/linked.safetensors": "blobs/abc"})
	tensors, notes := tensorsOf(t, src, Options{})
	want := `m F16 [2] 4 misc/m.safetensors
a U8 [0 7] 0 model/a/A.SafeTensors
b.2 BF16 [4] 8 model/b.safetensors
b.1 F32 [] 4 model/b.safetensors
linked I64 [1] 8 model/linked.safetensors
x F32 [2 3] 24 tensor_data/x.bin
words string [1] 13 tensor_data/words.toml
both nested [] 0 tensor_data/index.toml
`
	if diff := cmp.Diff(want, shown(tensors)); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		"model/broken.safetensors: breaks the safetensors format: ",
		"model/longer.safetensors: breaks the safetensors format: file has ",
		"model/pointer.safetensors: is a git-lfs pointer",
	} {
		if !strings.Contains(noteText(notes), want) {
			t.Errorf("got the notes\n%swant %s", noteText(notes), want)
		}
	}
	if len(notes) != 3 {
		t.Errorf("got %d notes, want 3:\n%s", len(notes), noteText(notes))
	}
	tensors, _ = tensorsOf(t, src, Options{Member: "model/b.safetensors"})
	if got := shown(tensors); !strings.HasPrefix(got, "b.2") || len(tensors) != 2 {
		t.Errorf("of one member: got\n%s", got)
	}
	if _, _, err := Tensors(t.Context(), src, Options{Member: "model/none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no member: got %v, want fs.ErrNotExist", err)
	}
}

func TestTensorsOfRealFiles(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range []string{"mnist", "dtypes"} {
		b, err := os.ReadFile(testenv.Foreign(t, "safetensors/"+name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		files["model/"+name+".safetensors"] = b
	}
	src := cartontest.New(files, nil)
	tensors, notes := tensorsOf(t, src, Options{})
	count, elementsOf := map[string]int{}, map[string]int64{}
	for _, x := range tensors {
		count[x.Member]++
		elementsOf[x.Member] += x.Elements()
		// What is read alone is what lies in the file.
		got, _ := elements(t, src, &x)
		begin := x.Offset
		if string(got) != string(files[x.Member][begin:begin+x.Bytes]) {
			t.Errorf("%s: %s: read other bytes than the file has", x.Member, x.Name)
		}
	}
	if len(notes) != 0 || count["model/mnist.safetensors"] != 20 || count["model/dtypes.safetensors"] != 10 ||
		elementsOf["model/mnist.safetensors"] != 376_940 || elementsOf["model/dtypes.safetensors"] != 60 {
		t.Errorf("got %v tensors, %v elements, notes %v", count, elementsOf, notes)
	}
}

// A file is called by its own name, not by that of a symlink before it; but a
// name that tells no format is no name for its tensors.
func TestTensorsAreInFilesAndNotInSymlinks(t *testing.T) {
	b := func(n int64) []byte { return safetensorsOf(0, entry{"w", "U8", []int64{n}}) }
	src := cartontest.New(map[string][]byte{"model/b.safetensors": b(1), "model/blobs/x": b(2), "model/c.safetensors": b(3)},
		map[string]string{"model/a.safetensors": "b.safetensors", "model/d.safetensors": "blobs/x", "model/z.safetensors": "c.safetensors"})
	tensors, notes := tensorsOf(t, src, Options{})
	var got []string
	for _, tensor := range tensors {
		got = append(got, tensor.Member)
	}
	want := []string{"model/b.safetensors", "model/c.safetensors", "model/d.safetensors"}
	if diff := cmp.Diff(want, got); diff != "" || len(notes) > 0 {
		t.Errorf("%s%v", diff, notes)
	}
	if tensor := find(t, src, "w", Options{Member: "model/a.safetensors"}); tensor.Member != "model/a.safetensors" {
		t.Errorf("by its symlink: got %s", tensor.Member)
	}
}

func TestHeadersCostOneRangeOrTwo(t *testing.T) {
	for pad, want := range map[int][]string{
		100:                  {"model/m.safetensors 0+102408"},
		100_000:              {"model/m.safetensors 0+102408"},
		100 << 10:            {"model/m.safetensors 0+102408"},
		100<<10 + 1:          {"model/m.safetensors 0+102408", "model/m.safetensors 102408+1"},
		2*headerAtOnce + 100: {"model/m.safetensors 0+102408", "model/m.safetensors 102408+102516"},
	} {
		b := safetensorsOf(pad, entry{"w", "U8", []int64{500_000}})
		a := counting(t, cartontest.New(map[string][]byte{"model/m.safetensors": b}, nil))
		if tensors, notes := tensorsOf(t, a, Options{}); len(tensors) != 1 {
			t.Errorf("%d: got %v, %v", pad, tensors, notes)
		}
		if diff := cmp.Diff(want, a.ranges); diff != "" {
			t.Errorf("a header of %d bytes: %s", pad, diff)
		}
	}
}

// Where ranges are expensive the member is read forward, and not behind its header.
func TestHeadersOfCompressedMembersAreReadOnce(t *testing.T) {
	b := safetensorsOf(3*headerAtOnce, entry{"w", "U8", []int64{5_000_000}})
	a := counting(t, cartontest.New(map[string][]byte{"model/m.safetensors": b}, nil, dear("model/m.safetensors")))
	if tensors, notes := tensorsOf(t, a, Options{}); len(tensors) != 1 {
		t.Errorf("got %v, %v", tensors, notes)
	}
	if want := []string{"model/m.safetensors 0+-1"}; !cmp.Equal(a.ranges, want) || a.read > 4*headerAtOnce {
		t.Errorf("asked for %v and read %d bytes", a.ranges, a.read)
	}
}

func TestSizesThatNobodyKnows(t *testing.T) {
	for _, n := range []int64{3, 500_000} {
		b := safetensorsOf(0, entry{"w", "U8", []int64{n}})
		src := cartontest.New(map[string][]byte{"model/m.safetensors": b}, nil, cartontest.WithUnknownSize("model/m.safetensors"))
		tensors, notes := tensorsOf(t, src, Options{})
		if len(tensors) != 1 || len(notes) != 0 {
			t.Fatalf("got %v, %v", tensors, notes)
		}
		if got, verified := elements(t, src, &tensors[0]); string(got) != string(pattern(n)) || verified {
			t.Errorf("got %d bytes, verified: %v", len(got), verified)
		}
	}
}

// The header of a file of 20 GiB costs its header.
func TestAHugeFileCostsItsHeader(t *testing.T) {
	const size = 20 << 30
	head, data := headOf(0, entry{"w", "U8", []int64{size}}, entry{"last", "F32", []int64{2}})
	a := counting(t, nil)
	a.Source = cartontest.New(map[string][]byte{"model/m.safetensors": head}, nil)
	a.large = map[string]int64{"model/m.safetensors": int64(len(head)) + data}
	tensors, notes := tensorsOf(t, a, Options{})
	if len(tensors) != 2 || len(notes) != 0 || a.read > headerAtOnce || len(a.ranges) != 1 {
		t.Errorf("got %d tensors and %v after %d bytes and %v", len(tensors), notes, a.read, a.ranges)
	}
}

// The headers of 100 shards are one request each, eight at once.
func TestShardsAreReadInParallel(t *testing.T) {
	const shards = 100
	files := map[string][]byte{}
	for i := range shards {
		files[fmt.Sprintf("model/model-%05d-of-%05d.safetensors", i+1, shards)] = safetensorsOf(0, entry{fmt.Sprintf("w%d", i), "F32", []int64{50_000}})
	}
	a := counting(t, cartontest.New(files, nil))
	// Nobody gets an answer before as many have asked as may be open at once.
	var mu sync.Mutex
	waiting, full := 0, make(chan struct{})
	a.barrier = func() {
		mu.Lock()
		if waiting++; waiting == download.DefaultConcurrency {
			close(full)
		}
		mu.Unlock()
		<-full
	}
	facts, err := Describe(t.Context(), a, Options{})
	if err != nil || facts.Parameters != shards*50_000 {
		t.Errorf("got %+v, %v", facts, err)
	}
	if len(a.ranges) != shards || a.most > download.DefaultConcurrency {
		t.Errorf("took %d requests, at most %d at once", len(a.ranges), a.most)
	}
}

// Members of one compressed tar layer are read one after another.
func TestMembersOfOneStreamAreReadInOrder(t *testing.T) {
	files := map[string][]byte{}
	var paths, want []string
	for i := range 20 {
		path := fmt.Sprintf("model/%02d.safetensors", i)
		files[path] = safetensorsOf(0, entry{"w", "F32", []int64{int64(i)}})
		paths, want = append(paths, path), append(want, path+" 0+-1")
	}
	a := counting(t, cartontest.New(files, nil, cartontest.WithBundle(3, paths...)))
	if tensors, _ := tensorsOf(t, a, Options{}); len(tensors) != 20 {
		t.Errorf("got %d tensors", len(tensors))
	}
	if diff := cmp.Diff(want, a.ranges); diff != "" || a.most != 1 {
		t.Errorf("%d at once: %s", a.most, diff)
	}
}

func TestASourceThatFails(t *testing.T) {
	broken := errors.New("broken")
	src := cartontest.New(map[string][]byte{"model/m.safetensors": safetensorsOf(0, entry{"w", "F32", []int64{3}})}, nil)
	for _, dearly := range []bool{false, true} {
		place := carton.PlaceStored
		if dearly {
			place = carton.PlaceCompressed
		}
		a := &failingRange{Source: src, place: place, err: broken}
		_, _, err := Tensors(t.Context(), a, Options{})
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "model/m.safetensors") {
			t.Errorf("got %v, want the source's error with the member's name", err)
		}
		if _, err := Describe(t.Context(), a, Options{}); !errors.Is(err, broken) {
			t.Errorf("Describe: got %v, want the source's error", err)
		}
	}
	members := cartontest.New(nil, nil, cartontest.WithMembersError(broken))
	if _, _, err := Tensors(t.Context(), members, Options{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the source's error", err)
	}
}

func TestABrokenTensorIndexIsANote(t *testing.T) {
	for index, want := range map[string]string{
		"= no toml": "tensor_data/index.toml: ",
		"[[tensor]]\nname = \"x\"\ndtype = \"float32\"\nshape = [2]\nfile = \"x.bin\"\n":  "tensor_data/x.bin: has 24 bytes, its shape and type need 8",
		"[[tensor]]\nname = \"x\"\ndtype = \"float32\"\nshape = [2]\nfile = \"no.bin\"\n": "names tensor_data/no.bin, which the carton does not hold",
	} {
		src := cartontest.New(map[string][]byte{"tensor_data/index.toml": []byte(index), "tensor_data/x.bin": make([]byte, 24)}, nil)
		tensors, notes := tensorsOf(t, src, Options{})
		if len(tensors) != 0 || len(notes) != 1 || !strings.Contains(noteText(notes), want) {
			t.Errorf("%s: got %v and %swant %s", index, tensors, noteText(notes), want)
		}
	}
}
