package readers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	parser "github.com/gpustack/gguf-parser-go"
	"github.com/nlpodyssey/safetensors"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// noise is n bytes that say nothing.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// cut packs a file with --shard, and returns the folder of what comes out.
func cut(t *testing.T, name string, data []byte, most int64) string {
	t.Helper()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "m")
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := pack.Open(t.Context(), []string{dir}, pack.Options{Shard: most})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := carton.Extract(t.Context(), to, src, carton.ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "model")
}

// tensorsOf is a model of tensors of every width, some of which are larger than a
// shard.
func tensorsOf(t *testing.T) []byte {
	t.Helper()
	var tensors []modeltest.Tensor
	for i := range 12 {
		for dtype, width := range map[string]int{"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I64": 8, "U8": 1, "BOOL": 1} {
			tensors = append(tensors, modeltest.Tensor{
				Name: fmt.Sprintf("layers.%d.%s.\"ü\"", i, dtype), DType: dtype, Shape: []int64{int64(i + 1), 50}, Data: noise((i + 1) * 50 * width),
			})
		}
	}
	tensors = append(tensors, modeltest.Tensor{Name: "empty", DType: "F32", Shape: []int64{0, 7}}, modeltest.Tensor{Name: "scalar", DType: "F32", Shape: []int64{}, Data: noise(4)},
		modeltest.Tensor{Name: "large", DType: "F32", Shape: []int64{2500}, Data: noise(10_000)})
	return modeltest.Safetensors(t, map[string]string{"format": "pt", "who": "we"}, tensors...)
}

// The reader is nlpodyssey's, written from the format's text: what it finds in the
// shards, where the index says, is what it finds in the whole.
func TestSafetensorsOfNLPOdyssey(t *testing.T) {
	whole := tensorsOf(t)
	want, err := safetensors.Deserialize(whole)
	if err != nil {
		t.Fatal(err)
	}
	dir := cut(t, "model.safetensors", whole, 8000)
	var index struct {
		Metadata struct {
			TotalSize int `json:"total_size"`
		}
		Map map[string]string `json:"weight_map"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "model.safetensors.index.json"))
	if err == nil {
		err = json.Unmarshal(b, &index)
	}
	if err != nil || len(index.Map) != want.Len() {
		t.Fatalf("the index has %d tensors of %d: %v", len(index.Map), want.Len(), err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	total := 0
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, head, err := safetensors.ReadMetadata(b)
		if err != nil || head.Metadata()["format"] != "pt" || head.Metadata()["who"] != "we" {
			t.Fatalf("%s: %v, %v", name, head.Metadata(), err)
		}
		got, err := safetensors.Deserialize(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(b) > 8000 && got.Len() > 1 {
			t.Errorf("%s has %d bytes", name, len(b))
		}
		for _, x := range got.Tensors() {
			w, ok := want.Tensor(x.Name)
			v := x.TensorView
			if !ok || index.Map[x.Name] != filepath.Base(name) || v.DType() != w.DType() || !slices.Equal(v.Shape(), w.Shape()) || !bytes.Equal(v.Data(), w.Data()) {
				t.Errorf("%s: %s is not as it was, or the index says %s", name, x.Name, index.Map[x.Name])
			}
			delete(index.Map, x.Name)
			total += len(v.Data())
		}
	}
	if len(index.Map) > 0 || total != index.Metadata.TotalSize || len(names) < 5 {
		t.Errorf("%d files with %d bytes of tensors, the index says %d; %v are in no file", len(names), total, index.Metadata.TotalSize, index.Map)
	}
}

// llama is a model that llama.cpp loads: two layers, a token for each byte.
func llama(t *testing.T) []byte {
	t.Helper()
	const width, vocabulary = 256, 288
	tokens, kinds := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}
	for i := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", i)), append(kinds, 6)
	}
	for len(tokens) < vocabulary {
		tokens, kinds = append(tokens, string(rune('А'+len(tokens)))), append(kinds, 1)
	}
	keys := []any{
		"general.architecture", "llama", "general.name", "Tiny", "llama.context_length", uint32(128), "llama.embedding_length", uint32(width),
		"llama.block_count", uint32(2), "llama.feed_forward_length", uint32(2 * width), "llama.attention.head_count", uint32(4),
		"llama.attention.layer_norm_rms_epsilon", float32(1e-5), "llama.vocab_size", uint32(vocabulary),
		"tokenizer.ggml.model", "llama", "tokenizer.ggml.tokens", tokens, "tokenizer.ggml.scores", make([]float32, vocabulary), "tokenizer.ggml.token_type", kinds,
	}
	var all []modeltest.GGUFTensor
	add := func(name string, kind uint32, dims ...uint64) {
		n := uint64(1)
		for _, d := range dims {
			n *= d
		}
		bytesOf := map[uint32][2]uint64{0: {1, 4}, 8: {32, 34}, 12: {256, 144}}[kind]
		all = append(all, modeltest.GGUFOf(name, kind, dims, make([]byte, n/bytesOf[0]*bytesOf[1])))
		copy(all[len(all)-1].Data[1:], name) // so that no two are the same
	}
	add("token_embd.weight", 8, width, vocabulary)
	for i := range 2 {
		blk := fmt.Sprintf("blk.%d.", i)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			add(blk+name+".weight", 12, width, width)
		}
		add(blk+"attn_norm.weight", 0, width)
		add(blk+"ffn_norm.weight", 0, width)
		add(blk+"ffn_gate.weight", 12, width, 2*width)
		add(blk+"ffn_up.weight", 12, width, 2*width)
		add(blk+"ffn_down.weight", 12, 2*width, width)
	}
	add("output_norm.weight", 0, width)
	add("output.weight", 8, width, vocabulary)
	return modeltest.GGUF(t, 32, keys, all...)
}

// The reader is gpustack's: what it finds in the parts is what it finds in the whole,
// with the same bytes behind it.
func TestGGUFOfGPUStack(t *testing.T) {
	whole := llama(t)
	dir := cut(t, "tiny.gguf", whole, 150_000)
	parts, _ := filepath.Glob(filepath.Join(dir, "tiny-*.gguf"))
	if len(parts) < 4 {
		t.Fatalf("got the parts %q", parts)
	}
	name := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	want := tensorBytes(t, name)
	got := map[string]string{}
	for _, part := range parts {
		for tensor, data := range tensorBytes(t, part) {
			if _, twice := got[tensor]; twice {
				t.Errorf("%s is in two parts", tensor)
			}
			got[tensor] = data
		}
	}
	for tensor, data := range want {
		if got[tensor] != data {
			t.Errorf("%s is not as it was", tensor)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d tensors, want %d", len(got), len(want))
	}
	one, err := parser.ParseGGUFFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.ParseGGUFFile(parts[0]) // it finds the others by their names
	if err != nil {
		t.Fatal(err)
	}
	if all.ModelParameters != one.ModelParameters || len(all.TensorInfos) != len(one.TensorInfos) || all.Metadata().Name != "Tiny" {
		t.Errorf("the parts together: %v parameters, %d tensors, %+v; want %v and %d", all.ModelParameters, len(all.TensorInfos), all.Metadata(), one.ModelParameters, len(one.TensorInfos))
	}
}

// tensorBytes is what the reader finds in one file: type, dimensions and content of
// each tensor.
func tensorBytes(t *testing.T, name string) map[string]string {
	t.Helper()
	alone := filepath.Join(t.TempDir(), "alone.gguf") // else it reads all parts
	b, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(alone, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseGGUFFile(alone)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out := map[string]string{}
	for _, x := range f.TensorInfos {
		data := make([]byte, x.Bytes())
		if _, err := bytes.NewReader(b).ReadAt(data, f.TensorDataStartOffset+int64(x.Offset)); err != nil && err != io.EOF {
			t.Fatalf("%s: %s: %v", name, x.Name, err)
		}
		out[x.Name] = fmt.Sprintln(x.Type, x.Dimensions, string(data))
	}
	return out
}
