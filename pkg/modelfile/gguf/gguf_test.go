package gguf_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
)

type tensor = modeltest.GGUFTensor

var tensorOf = modeltest.GGUFOf

// llama is a file as llama.cpp's converter writes it, of every type of tensor that
// there is.
func llama(t testing.TB, more ...any) []byte {
	t.Helper()
	keys := slices.Concat([]any{
		"general.architecture", "llama", "general.type", "model", "general.name", "Tiny Llama",
		"general.license", "apache-2.0", "general.file_type", uint32(15), "general.quantization_version", uint32(2),
		"llama.context_length", uint32(131072), "llama.rope.freq_base", float32(500000),
		"tokenizer.ggml.tokens",
		[]string{"<s>", "", "a"},
		"tokenizer.ggml.scores",
		[]float32{0, -1, 2},
		"tokenizer.ggml.token_type",
		[]int32{3, 1, 1},
		"tokenizer.ggml.add_bos_token", true,
		"tokenizer.chat_template", "{{ messages }}",
	}, more)
	var tensors []tensor
	for kind := range uint32(64) {
		block, known := specBlocks[kind]
		if !known {
			continue
		}
		x := tensorOf(fmt.Sprintf("blk.%d.weight", kind), kind, []uint64{uint64(2 * block[0]), 3}, nil)
		x.Data = bytes.Repeat([]byte{byte(kind)}, int(6*block[1]))
		tensors = append(tensors, x)
	}
	return modeltest.GGUF(t, 32, keys, tensors...)
}

// sameAsBySpec holds what the package says of a file against readBySpec.
func sameAsBySpec(t *testing.T, b []byte) *gguf.Header {
	t.Helper()
	h, err := gguf.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	keys, tensors := readBySpec(b)
	if len(h.Keys) != len(keys) || len(h.Tensors) != len(tensors) {
		t.Fatalf("got %d keys and %d tensors, want %d and %d", len(h.Keys), len(h.Tensors), len(keys), len(tensors))
	}
	for _, k := range h.Keys {
		if _, ok := keys[k.Name]; !ok {
			t.Errorf("got the key %s, which the file does not have", k.Name)
		}
	}
	for i, want := range tensors {
		got := h.Tensors[i]
		if got.Name != want.name || uint32(got.Type) != want.kind || !slices.Equal(got.Shape, want.shape) ||
			h.DataStart+got.Offset != want.at || got.Bytes != want.bytes {
			t.Errorf("got %+v of data at %d, want %+v", got, h.DataStart, want)
		}
	}
	return h
}

// TestFilesOfLlamaCpp: the files that llama.cpp wrote list the tensors that an
// independent reader finds, and each tensor's bytes are where they should be.
func TestFilesOfLlamaCpp(t *testing.T) {
	for name, want := range map[string]int{"dummy.gguf": 10, "dummy-00001-of-00002.gguf": 0, "dummy-00002-of-00002.gguf": 10} {
		b, err := os.ReadFile(testenv.Foreign(t, "gguf/"+name))
		if err != nil {
			t.Fatal(err)
		}
		h := sameAsBySpec(t, b)
		if len(h.Tensors) != want || len(h.Findings) > 0 {
			t.Errorf("%s: got %d tensors, findings %q, want %d and none", name, len(h.Tensors), h.Findings, want)
		}
		for i, x := range h.Tensors { // each holds 100 + its number, everywhere
			at := h.DataStart + x.Offset
			if one := fmt.Appendf(nil, "%s", b[at:at+4]); !bytes.Equal(b[at:at+x.Bytes], bytes.Repeat(one, int(x.Bytes/4))) {
				t.Errorf("%s: %d: not one number everywhere", name, i)
			}
		}
	}
}

func TestEveryType(t *testing.T) {
	h := sameAsBySpec(t, llama(t))
	for _, x := range h.Tensors {
		if x.Type.String() == "" {
			t.Errorf("%s has no name", x.Name)
		}
	}
}

func TestContent(t *testing.T) {
	b := llama(t, "general.base_model.count", uint32(1), "general.base_model.0.repo_url", "https://huggingface.co/a/b")
	c, err := gguf.Format.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(c.Models) != 1 || c.Part != nil || len(c.Notes)+len(c.Findings) > 0 {
		t.Fatalf("got %+v, %v", c, err)
	}
	m := c.Models[0]
	if m.Name != "Tiny Llama" || m.Architecture != "llama" || m.Quantization != "Q4_K_M" || m.Context != 131072 || !m.ChatTemplate ||
		m.License != "apache-2.0" || !slices.Equal(m.BaseModels, []string{"https://huggingface.co/a/b"}) || m.Tensors != len(c.Tensors) {
		t.Errorf("got %+v", m)
	}
	var elements int64
	for _, x := range c.Tensors {
		elements += x.Elements()
	}
	if m.Parameters != elements || elements == 0 {
		t.Errorf("got %d parameters, want %d", m.Parameters, elements)
	}
}

func TestQuantization(t *testing.T) {
	weights := []tensor{
		tensorOf("a", 12, []uint64{256, 8}, make([]byte, 144*8)), tensorOf("n1", 0, []uint64{8}, make([]byte, 32)),
		tensorOf("n2", 0, []uint64{8}, make([]byte, 32)),
	}
	for _, c := range []struct {
		value any
		want  string
	}{
		{uint32(17), "Q5_K_M"}, {uint32(1024 + 7), "Q8_0"}, {uint64(2), "Q4_0"}, {uint32(999), "Q4_K"}, {"Q8_0", "Q4_K"}, {int32(-1), "Q4_K"},
	} {
		b := modeltest.GGUF(t, 32, []any{"general.file_type", c.value}, weights...)
		if h := sameAsBySpec(t, b); h.Quantization() != c.want {
			t.Errorf("file_type %v: got %s, want %s", c.value, h.Quantization(), c.want)
		}
	}
	if h := sameAsBySpec(t, modeltest.GGUF(t, 32, nil)); h.Quantization() != "" {
		t.Errorf("of an empty file: got %s", h.Quantization())
	}
}

// TestWhatIsOddIsRead: what is no fault, or one that hides nothing.
func TestWhatIsOddIsRead(t *testing.T) {
	one := tensorOf("a", 0, []uint64{3}, make([]byte, 12))
	whole := modeltest.GGUF(t, 32, nil, one, tensorOf("b", 0, nil, make([]byte, 4)))
	for name, c := range map[string]struct {
		b             []byte
		notes, faults int
	}{
		"no padding at the end": {whole[:len(whole)-28], 0, 0},
		"version 2":             {append([]byte("GGUF\x02"), whole[5:]...), 0, 0},
		"gap":                   {modeltest.GGUF(t, 32, []any{"general.alignment", uint32(16)}, one, tensorOf("b", 0, nil, make([]byte, 4))), 0, 2},
		"bytes behind the end":  {append(slices.Clone(whole), make([]byte, 64)...), 0, 1},
		"unknown type":          {modeltest.GGUF(t, 32, nil, tensorOf("z", 77, []uint64{3}, make([]byte, 100)), one), 1, 0},
		"alignment of 64":       {modeltest.GGUF(t, 64, []any{"general.alignment", uint32(64)}, one, tensorOf("b", 0, nil, make([]byte, 4))), 0, 0},
		"nested arrays":         {modeltest.GGUF(t, 32, []any{"k", modeltest.Raw("\x09\x00\x00\x00\x09\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00ab")}, one), 0, 0},
		"nothing at all":        {modeltest.GGUF(t, 32, nil)[:24], 0, 0},
		"split key of one part": {modeltest.GGUF(t, 32, []any{"split.no", uint16(0), "split.count", uint16(1)}, one), 0, 0},
		"keys of other types": {modeltest.GGUF(t, 32, []any{
			"general.name", uint32(1), "general.architecture",
			[]string{"x"},
			"general.license", true,
			".context_length", "long", "tokenizer.chat_template", uint32(7), "split.count", "2",
		}, one), 0, 0},
	} {
		got, err := gguf.Format.ReadHeader(bytes.NewReader(c.b), int64(len(c.b)))
		if err != nil || len(got.Notes) != c.notes || len(got.Findings) != c.faults {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if err == nil && got.Part != nil {
			t.Errorf("%s: got a part %+v", name, got.Part)
		}
	}
}

// TestALargeVocabularyCostsNoMemory: 150,000 tokens are stepped over.
func TestALargeVocabularyCostsNoMemory(t *testing.T) {
	tokens := make([]string, 150_000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token number %d", i)
	}
	b := llama(t, "tokenizer.ggml.merges", tokens, "other", make([]float32, 300_000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h, err := gguf.ReadHeader(bytes.NewReader(b), int64(len(b)))
	runtime.ReadMemStats(&after)
	if err != nil || len(h.Tensors) != len(specBlocks) {
		t.Fatalf("got %v, %v", h, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 256<<10 {
		t.Errorf("took %d bytes of memory for a header of %d", n, h.DataStart)
	}
}

// TestTheSourcesErrorIsItsOwn: a source that fails is no broken file; one that ends
// is.
func TestTheSourcesErrorIsItsOwn(t *testing.T) {
	b := llama(t)
	failed := errors.New("the line is cut")
	for n := 0; n < len(b) && n < 2000; n += 7 {
		_, err := gguf.ReadHeader(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(failed)), int64(len(b)))
		if !errors.Is(err, failed) || errors.Is(err, gguf.ErrFormat) {
			t.Fatalf("after %d bytes: got %v, want the source's", n, err)
		}
		for _, size := range []int64{-1, int64(n)} {
			_, err = gguf.ReadHeader(bytes.NewReader(b[:n]), size)
			if !errors.Is(err, gguf.ErrFormat) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("a file of %d bytes, size %d: got %v, want a format error", n, size, err)
			}
		}
	}
	_, err := gguf.ReadHeader(strings.NewReader(modelfile.PointerPrefix+".github.com/spec/v1\n"), 130)
	if !errors.Is(err, modelfile.ErrPointer) {
		t.Errorf("of a pointer: got %v", err)
	}
}

func TestSets(t *testing.T) {
	part := func(number, of int, all int64) *modelfile.Part {
		return &modelfile.Part{Number: number, Of: of, Tensors: all}
	}
	name := func(number, of int) string { return gguf.PartName("m", number, of) }
	for want, files := range map[string][]gguf.SetFile{
		"":                           {{name(1, 2), part(1, 2, 10), 0}, {name(2, 2), part(2, 2, 10), 10}},
		"missing are 1 of its 2":     {{name(2, 2), part(2, 2, 10), 10}},
		"missing are 65534 of its":   {{name(2, 65535), part(2, 65535, 10), 10}},
		"hold 9 tensors, and should": {{name(1, 2), part(1, 2, 10), 0}, {name(2, 2), part(2, 2, 10), 9}},
		"different things":           {{name(1, 2), part(1, 2, 10), 0}, {name(2, 2), part(2, 2, 11), 10}},
		"that it is part 2 of 2":     {{name(1, 2), part(2, 2, 10), 0}},
		"does not say of itself":     {{name(1, 2), nil, 0}},
	} {
		err := gguf.CheckSet(files, 0)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for base, want := range map[string]bool{
		"m-00001-of-00002.gguf": true, "m-00000-of-00002.gguf": false, "m-00003-of-00002.gguf": false, "m-1-of-2.gguf": false, "m.gguf": false,
	} {
		if _, _, _, ok := gguf.ParsePartName(base); ok != want {
			t.Errorf("%s: got %v, want %v", base, ok, want)
		}
	}
}
