package inspect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/modeltest"
)

// quantised is a GGUF file of a model with three tensors, stored as kind, with more
// keys.
func quantised(t *testing.T, kind uint32, blockBytes int, more ...any) []byte {
	t.Helper()
	keys := append([]any{"general.architecture", "llama", "general.name", "Tiny", "llama.context_length", uint32(4096)}, more...)
	return modeltest.GGUF(t, 32, keys,
		modeltest.GGUFOf("blk.0.ffn", kind, []uint64{256, 64}, pattern(int64(64*blockBytes))),
		modeltest.GGUFOf("blk.0.norm", 0, []uint64{256}, pattern(1024)),
		modeltest.GGUFOf("output", kind, []uint64{256, 2}, pattern(int64(2*blockBytes))),
	)
}

const tinyParameters = 66*256 + 256

// partOf is one part of a split model, of the tensors named so.
func partOf(t *testing.T, number, of, all int, names ...string) []byte {
	t.Helper()
	keys := []any{"split.no", uint16(number - 1), "split.count", uint16(of), "split.tensors.count", int32(all)}
	if number == 1 {
		keys = append([]any{"general.architecture", "llama", "general.file_type", uint32(7)}, keys...)
	}
	var tensors []modeltest.GGUFTensor
	for _, name := range names {
		tensors = append(tensors, modeltest.GGUFOf(name, 8, []uint64{32, 4}, pattern(4*34)))
	}
	return modeltest.GGUF(t, 32, keys, tensors...)
}

func partPath(number, of int) string { return fmt.Sprintf("model/m-%05d-of-%05d.gguf", number, of) }

// TestGGUF: a header that is longer than what is asked for at first is read on, and
// no further; one tensor is its own bytes.
func TestGGUF(t *testing.T) {
	for _, tokens := range []int{0, 30_000} {
		file := quantised(t, 12, 144, "general.file_type", uint32(15), "tokenizer.chat_template", "{{}}", "tokenizer.ggml.tokens", make([]string, tokens))
		const path = "model/m.gguf"
		a := counting(t, cartontest.New(map[string][]byte{path: file}, nil))
		tensors, notes := tensorsOf(t, a, Options{})
		want := "blk.0.ffn Q4_K [64 256] 9216 model/m.gguf\nblk.0.norm F32 [256] 1024 model/m.gguf\noutput Q4_K [2 256] 288 model/m.gguf\n"
		if shown(tensors) != want || len(notes) != 0 || len(a.ranges) > 2 || a.read > int64(headerAtOnce+8*tokens+32<<10) {
			t.Errorf("got %s%s after %v, %d bytes", shown(tensors), noteText(notes), a.ranges, a.read)
		}
		// A file of which one tensor is all but a little is read whole, and verified.
		if got, verified := elements(t, a, find(t, a, "blk.0.ffn", Options{})); verified != (tokens == 0) || !bytes.Equal(got, pattern(9216)) {
			t.Errorf("got %d bytes, verified %v", len(got), verified)
		}
		forward := cartontest.New(map[string][]byte{path: file}, nil, dear(path))
		if got, verified := elements(t, forward, find(t, forward, "output", Options{})); !verified || !bytes.Equal(got, pattern(288)) {
			t.Errorf("read whole: got %d bytes, verified %v", len(got), verified)
		}
		f := describe(t, forward, Options{})
		if f.Format != "gguf" || f.Precision != "q4_k,float32" || f.Parameters != tinyParameters || len(f.Models) != 1 {
			t.Fatalf("got %+v", f)
		}
		m := f.Models[0]
		if m.Name != "Tiny" || m.Architecture != "llama" || m.Quantization != "Q4_K_M" || m.Context != 4096 || !m.ChatTemplate || m.Parameters != tinyParameters || m.Tensors != 3 {
			t.Errorf("got %+v", m)
		}
	}
}

// TestQuantisationsOfOneModelCountOnce: as repositories of hubs hold them, in one
// folder or in several.
func TestQuantisationsOfOneModelCountOnce(t *testing.T) {
	f := describe(t, cartontest.New(map[string][]byte{
		"model/m-F32.gguf": quantised(t, 0, 1024), "model/m-Q4_K.gguf": quantised(t, 12, 144), "model/Q8/m.gguf": quantised(t, 15, 292),
		"model/mmproj.gguf": modeltest.GGUF(t, 32, []any{"general.architecture", "clip"}, modeltest.GGUFOf("v.patch", 1, []uint64{10}, make([]byte, 20))),
	}, nil), Options{})
	if f.Parameters != tinyParameters+10 || f.Precision != "q8_k,float32,float16" || len(f.Models) != 4 {
		t.Errorf("got %d parameters, %s, %d models, want those of the first and of the projector", f.Parameters, f.Precision, len(f.Models))
	}
}

// TestSplitModels: parts are one model, and what is missing is said.
func TestSplitModels(t *testing.T) {
	whole := map[string][]byte{
		partPath(1, 3): partOf(t, 1, 3, 3), partPath(2, 3): partOf(t, 2, 3, 3, "a", "b"), partPath(3, 3): partOf(t, 3, 3, 3, "c"),
		"model/copy.gguf": modeltest.GGUF(t, 32, []any{"general.architecture", "llama"}, modeltest.GGUFOf("a", 0, []uint64{32, 4}, pattern(512)),
			modeltest.GGUFOf("b", 0, []uint64{32, 4}, pattern(512)), modeltest.GGUFOf("c", 0, []uint64{32, 4}, pattern(512))),
	}
	f := describe(t, cartontest.New(whole, nil), Options{})
	if f.Parameters != 3*128 || len(f.Models) != 2 || f.Models[1].Parts != 3 || f.Models[1].Parameters != 3*128 || f.Models[1].Tensors != 3 || f.Models[1].Quantization != "Q8_0" || len(f.Notes) != 0 {
		t.Errorf("got %+v", f)
	}
	for want, change := range map[string]func(files map[string][]byte){
		"missing are 1 of its 3 parts: 00002": func(files map[string][]byte) { delete(files, partPath(2, 3)) },
		"hold 2 tensors, and should hold 3":   func(files map[string][]byte) { files[partPath(3, 3)] = partOf(t, 3, 3, 3) },
		"say different things of the whole":   func(files map[string][]byte) { files[partPath(3, 3)] = partOf(t, 3, 3, 4, "c", "d") },
		"says of itself that it is part 1 of 3": func(files map[string][]byte) {
			files["model/z.gguf"] = files[partPath(1, 3)]
			for n := 1; n <= 3; n++ {
				delete(files, partPath(n, 3))
			}
		},
		"breaks the GGUF format": func(files map[string][]byte) { files[partPath(2, 3)] = []byte("GGUF") },
	} {
		files := map[string][]byte{}
		for path, b := range whole {
			files[path] = b
		}
		change(files)
		src := cartontest.New(files, nil)
		_, notes := tensorsOf(t, src, Options{})
		if len(notes) != 1 || !strings.Contains(notes[0].Text, want) || notes[0].Err == nil {
			t.Errorf("got %s, want one note with %q", noteText(notes), want)
		}
		if facts := describe(t, src, Options{}); len(facts.Notes) != 1 || !strings.Contains(facts.Notes[0].Text, want) {
			t.Errorf("described: got %s, want %q", noteText(facts.Notes), want)
		}
	}
}

// TestTensorsOfTypesThatAreNotKnown are listed and counted, and can't be fetched.
func TestTensorsOfTypesThatAreNotKnown(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/m.gguf": modeltest.GGUF(t, 32, nil,
		modeltest.GGUFOf("new", 77, []uint64{10}, make([]byte, 64)), modeltest.GGUFOf("old", 1, []uint64{4}, make([]byte, 8)))}, nil)
	tensors, notes := tensorsOf(t, src, Options{})
	if shown(tensors) != "new  [10] -1 model/m.gguf\nold F16 [4] 8 model/m.gguf\n" || len(notes) != 1 || notes[0].Err != nil {
		t.Errorf("got %s%s", shown(tensors), noteText(notes))
	}
	if f := describe(t, src, Options{}); f.Parameters != 14 || f.Precision != "float16" {
		t.Errorf("got %+v", f)
	}
	if _, _, err := Open(t.Context(), src, find(t, src, "new", Options{})); err == nil || !strings.Contains(err.Error(), "type is not known here") {
		t.Errorf("got %v", err)
	}
}
