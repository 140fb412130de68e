package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

func itoa(n int) string { return strconv.Itoa(n) }

const indexPath = "model/model.safetensors.index.json"

// sharded is a set of ten shards with an index; more are other files.
func sharded(index func(i int) string, more map[string][]byte) map[string][]byte {
	files := map[string][]byte{}
	var entries []string
	for i := range 10 {
		shard := fmt.Sprintf("model-%02d.safetensors", i)
		files["model/"+shard] = safetensorsOf(0, entry{fmt.Sprintf("w%d", i), "F32", []int64{int64(i)}})
		entries = append(entries, fmt.Sprintf(`"w%d":%q`, i, index(i)))
	}
	files[indexPath] = []byte(`{"metadata":{"total_size":180},"weight_map":{` + strings.Join(entries, ",") + `}}`)
	for path, b := range more {
		files[path] = b
	}
	return files
}

func right(i int) string { return fmt.Sprintf("model-%02d.safetensors", i) }

func TestAnIndexSaysWhichShard(t *testing.T) {
	a := counting(t, cartontest.New(sharded(right, nil), nil))
	tensor := find(t, a, "w7", Options{})
	want := []string{"model/model-07.safetensors 0+92"}
	if tensor.Member != "model/model-07.safetensors" || !cmp.Equal(a.ranges, want) || !cmp.Equal(a.opens, []string{indexPath}) {
		t.Errorf("got %+v after %v and %v, want %v", tensor, a.ranges, a.opens, want)
	}
}

func TestAnIndexThatIsWrong(t *testing.T) {
	rotated := func(i int) string { return right((i + 1) % 10) }
	src := cartontest.New(sharded(rotated, nil), nil)
	if tensor := find(t, src, "w7", Options{}); tensor.Member != "model/model-07.safetensors" {
		t.Errorf("got %+v", tensor)
	}
	_, notes := tensorsOf(t, src, Options{})
	for _, want := range []string{
		indexPath + ": model-07.safetensors lacks 1 of the 1 tensors that the index puts there",
		indexPath + ": model-07.safetensors holds 1 tensors that the index does not put there, such as \"w7\"",
	} {
		if !strings.Contains(noteText(notes), want+"\n") {
			t.Errorf("got\n%swant %s", noteText(notes), want)
		}
	}
	if len(notes) != 20 {
		t.Errorf("got %d notes, want 20", len(notes))
	}
	gone := func(i int) string { return "gone-" + right(i) }
	_, notes = tensorsOf(t, cartontest.New(sharded(gone, nil), nil), Options{})
	if want := indexPath + ": names the shard gone-model-03.safetensors, which is not there\n"; !strings.Contains(noteText(notes), want) {
		t.Errorf("got\n%swant %s", noteText(notes), want)
	}
	_, notes = tensorsOf(t, cartontest.New(sharded(right, map[string][]byte{indexPath: []byte("[]")}), nil), Options{})
	if len(notes) != 1 || notes[0].Member != indexPath {
		t.Errorf("an index that is none: got %v", notes)
	}
	broken := errors.New("broken")
	hook := func(_ string, _ int, r io.Reader) (io.Reader, error) { return cartontest.FailAfter(r, 10, broken), nil }
	src = cartontest.New(sharded(right, nil), nil, cartontest.WithOpen(hook))
	if _, _, err := Find(t.Context(), src, "w7", Options{}); !errors.Is(err, broken) || !strings.Contains(err.Error(), indexPath) {
		t.Errorf("an index that can't be read: got %v, want the source's error", err)
	}
	if _, notes := tensorsOf(t, cartontest.New(sharded(right, nil), nil), Options{}); len(notes) != 0 {
		t.Errorf("an index that is right: got %v", notes)
	}
}

func TestSeveralTensorsOfOneName(t *testing.T) {
	one := entry{"w7", "F32", []int64{1}}
	src := cartontest.New(sharded(right, map[string][]byte{"model/adapter.safetensors": safetensorsOf(0, one)}), nil)
	_, _, err := Find(t.Context(), src, "w7", Options{})
	if !errors.Is(err, ErrAmbiguous) || !strings.Contains(err.Error(), "in model/adapter.safetensors, model/model-07.safetensors") {
		t.Errorf("got %v, want ErrAmbiguous with both members", err)
	}
	if hints := hint.Of(err); len(hints) != 1 || hints[0].String() != "choose with inspect.Options.Member model/adapter.safetensors" {
		t.Errorf("got the hints %q", hints)
	}
	tensor := find(t, src, "w7", Options{Member: "model/adapter.safetensors"})
	if tensor.Member != "model/adapter.safetensors" {
		t.Errorf("got %+v", tensor)
	}
}

func TestNoSuchTensor(t *testing.T) {
	src := cartontest.New(map[string][]byte{weights: three(9), "model/broken.safetensors": {1}}, nil)
	_, notes, err := Find(t.Context(), src, "d e", Options{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `no tensor "d e"`) || len(notes) != 1 {
		t.Errorf("got %v and %v, want fs.ErrNotExist and a note", err, notes)
	}
	if _, _, err := Find(t.Context(), src, "a", Options{Member: "model/none.safetensors"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

// A file that was written as the index tells is found before tensor_data.
func TestTensorDataComesLast(t *testing.T) {
	files := map[string][]byte{
		"tensor_data/index.toml": []byte(dataIndex), "tensor_data/x.bin": pattern(24), "tensor_data/words.toml": []byte("data = [\"w\"]\n"),
		weights: safetensorsOf(0, entry{"x", "U8", []int64{1}}),
	}
	a := counting(t, cartontest.New(files, nil))
	if tensor := find(t, a, "x", Options{}); tensor.Member != weights || len(a.opens) != 0 {
		t.Errorf("got %+v after %v", tensor, a.opens)
	}
	if tensor := find(t, a, "x", Options{Member: "tensor_data/x.bin"}); tensor.Member != "tensor_data/x.bin" {
		t.Errorf("got %+v", tensor)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "a/b.c", true},
		{"*.weight", "layers.0.weight", true},
		{"enc/*/kernel", "enc/0/attn/kernel", true},
		{"layers.?.weight", "layers.10.weight", false},
		{"layers.[01].*", "layers.1.bias", true},
		{"", "a", false},
	} {
		if got, err := Match(c.pattern, c.name); got != c.want || err != nil {
			t.Errorf("%s, %s: got %v, %v", c.pattern, c.name, got, err)
		}
	}
	if _, err := Match("[", "a"); err == nil || !strings.Contains(err.Error(), `"["`) {
		t.Errorf("got %v, want that the pattern is wrong", err)
	}
}
