package pack_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/gguf"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// weights is a safetensors file of n tensors of 1,000 bytes.
func weights(t *testing.T, first, n int) string {
	t.Helper()
	var tensors []modeltest.Tensor
	for i := range n {
		tensors = append(tensors, modeltest.Tensor{Name: fmt.Sprintf("layer.%d", first+i), DType: "U8", Shape: []int64{1000}, Data: bytes.Repeat([]byte{byte(first + i)}, 1000)})
	}
	return string(modeltest.Safetensors(t, map[string]string{"format": "pt"}, tensors...))
}

// loaded is what a loader that knows the hub's layout finds: the index says where a
// tensor is, and the file's own header where in it.
func loaded(t *testing.T, c carton.Source, index string) map[string][]byte {
	t.Helper()
	var x struct {
		Metadata struct {
			TotalSize int64 `json:"total_size"`
		}
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal([]byte(read(t, c, index)), &x); err != nil {
		t.Fatal(err)
	}
	found, total := map[string][]byte{}, int64(0)
	for name, file := range x.Map {
		b := []byte(read(t, c, path.Join(path.Dir(index), file)))
		n := binary.LittleEndian.Uint64(b)
		var header map[string]struct {
			Offsets [2]int64 `json:"data_offsets"`
			Format  string   `json:"format"`
		}
		if err := json.Unmarshal(b[8:8+n], &header); err != nil || header["__metadata__"].Format != "pt" {
			t.Fatalf("%s: %v, %v", file, header, err)
		}
		at := header[name].Offsets
		found[name] = b[8+int64(n)+at[0] : 8+int64(n)+at[1]]
		total += at[1] - at[0]
	}
	if total != x.Metadata.TotalSize {
		t.Errorf("got %d bytes of tensors, the index says %d", total, x.Metadata.TotalSize)
	}
	return found
}

func wantWeights(t *testing.T, c carton.Source, index string, n int) {
	t.Helper()
	found := loaded(t, c, index)
	for i := range n {
		if got := found[fmt.Sprintf("layer.%d", i)]; !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, 1000)) {
			t.Errorf("tensor %d: got %d other bytes", i, len(got))
		}
	}
	if len(found) != n {
		t.Errorf("got %d tensors, want %d", len(found), n)
	}
}

// TestShard: a file that is too large becomes those that the hub's tools would
// write, always the same; nothing else changes.
func TestShard(t *testing.T) {
	dir := tree(t, map[string]string{"model.safetensors": weights(t, 0, 7), "small.safetensors": weights(t, 100, 1), "config.json": "{}"})
	opts := pack.Options{Shard: 3500}
	c := open(t, opts, dir)
	wantListing(t, c, "carton.toml", "model/config.json", "model/model-00001-of-00003.safetensors", "model/model-00002-of-00003.safetensors",
		"model/model-00003-of-00003.safetensors", "model/model.safetensors.index.json", "model/small.safetensors", "tensor_data/index.toml")
	wantWeights(t, c, "model/model.safetensors.index.json", 7)
	members, err := c.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Size > 3500 {
			t.Errorf("%s has %d bytes", m.Path, m.Size)
		}
		for _, span := range [][2]int64{{0, m.Size}, {m.Size / 3, m.Size / 2}, {m.Size - 1, 1}} { // as a push reads it
			all := read(t, c, m.Path)
			r, err := c.OpenRange(context.Background(), m.Path, span[0], span[1])
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			r.Close()
			if err != nil || string(b) != all[span[0]:span[0]+span[1]] {
				t.Errorf("%s %v: got %d bytes, %v", m.Path, span, len(b), err)
			}
		}
	}
	hash := c.Manifest().ModelHash()
	if again := open(t, opts, dir).Manifest().ModelHash(); again != hash {
		t.Errorf("got the model hash %s, want %s again", again, hash)
	}
	if one := open(t, opts, filepath.Join(dir, "model.safetensors")); len(one.Manifest().Entries()) != 6 {
		t.Errorf("got %v of the file alone", listing(t, one))
	}

	// What was cut is cut again, and is what cutting the whole gives.
	cut := t.TempDir()
	if err := carton.Extract(t.Context(), filepath.Join(cut, "m"), c, carton.ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	again := open(t, pack.Options{Shard: 2500}, filepath.Join(cut, "m", "model"))
	wantWeights(t, again, "model/model.safetensors.index.json", 7)
	if direct := open(t, pack.Options{Shard: 2500}, dir); direct.Manifest().ModelHash() != again.Manifest().ModelHash() {
		t.Errorf("got\n%v\nwant\n%v", listing(t, again), listing(t, direct))
	}

	// A file that changes is noticed, as any other.
	write(t, dir, map[string]string{"model.safetensors": strings.Replace(weights(t, 0, 7), "\x03\x03\x03", "\x03\x09\x03", 1)})
	r, err := c.Open(t.Context(), "model/model-00002-of-00003.safetensors")
	if err == nil {
		_, err = io.ReadAll(r)
		r.Close()
	}
	if err == nil {
		t.Error("a shard of a file that changed was read without an error")
	}
}

// A variant's index is called as loaders look for it, and one that is there keeps its
// name.
func TestShardOfAVariant(t *testing.T) {
	dir := tree(t, map[string]string{"unet/diffusion_pytorch_model.fp16.safetensors": weights(t, 0, 7)})
	c := open(t, pack.Options{Shard: 3500}, dir)
	wantWeights(t, c, "model/unet/diffusion_pytorch_model.safetensors.index.fp16.json", 7)
	cut := filepath.Join(t.TempDir(), "m")
	if err := carton.Extract(t.Context(), cut, c, carton.ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	again := open(t, pack.Options{Shard: 2500}, filepath.Join(cut, "model"))
	wantListing(t, again, "carton.toml", "model/unet/diffusion_pytorch_model.fp16-00001-of-00004.safetensors", "model/unet/diffusion_pytorch_model.fp16-00002-of-00004.safetensors",
		"model/unet/diffusion_pytorch_model.fp16-00003-of-00004.safetensors", "model/unet/diffusion_pytorch_model.fp16-00004-of-00004.safetensors",
		"model/unet/diffusion_pytorch_model.safetensors.index.fp16.json", "tensor_data/index.toml")
	wantWeights(t, again, "model/unet/diffusion_pytorch_model.safetensors.index.fp16.json", 7)
	folder := filepath.Join(cut, "model", "unet")
	if err := os.Rename(filepath.Join(folder, "diffusion_pytorch_model.safetensors.index.fp16.json"), filepath.Join(folder, "diffusion_pytorch_model.safetensors.fp16.index.json")); err != nil {
		t.Fatal(err)
	}
	wantWeights(t, open(t, pack.Options{Shard: 2500}, filepath.Join(cut, "model")), "model/unet/diffusion_pytorch_model.safetensors.fp16.index.json", 7)
	if err := os.Remove(filepath.Join(folder, "diffusion_pytorch_model.fp16-00002-of-00003.safetensors")); err != nil {
		t.Fatal(err)
	}
	refused(t, noop, carton.ErrFormat, "missing are 1 of the 3 shards", folder)
}

// TestShardGGUF: parts are what gguf-split would write, and one model.
func TestShardGGUF(t *testing.T) {
	var tensors []modeltest.GGUFTensor
	for i := range 5 {
		tensors = append(tensors, modeltest.GGUFOf(fmt.Sprintf("blk.%d", i), 12, []uint64{256, 4}, bytes.Repeat([]byte{byte(i)}, 4*144)))
	}
	whole := modeltest.GGUF(t, 32, []any{"general.name", "Tiny", "general.architecture", "llama"}, tensors...)
	dir := tree(t, map[string]string{"m.gguf": string(whole)})
	c := open(t, pack.Options{Shard: 1500}, dir)
	if c.Info.ModelName != "Tiny" || len(c.Warnings) > 0 {
		t.Errorf("got %+v, %q", c.Info, c.Warnings)
	}
	var all []byte
	for i := range 3 {
		b := []byte(read(t, c, "model/"+gguf.PartName("m", i+1, 3)))
		h, err := gguf.ReadHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil || len(b) > 1500 {
			t.Fatalf("part %d of %d bytes: %v", i+1, len(b), err)
		}
		for _, x := range h.Tensors {
			all = append(all, b[h.DataStart+x.Offset:h.DataStart+x.Offset+x.Bytes]...)
		}
	}
	if !bytes.Equal(all, whole[len(whole)-5*4*144:]) {
		t.Errorf("got %d bytes of tensors, or others", len(all))
	}
	cut := filepath.Join(t.TempDir(), "m")
	if err := carton.Extract(t.Context(), cut, c, carton.ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	again := open(t, pack.Options{Shard: 800}, filepath.Join(cut, "model", gguf.PartName("m", 2, 3)))
	if direct := open(t, pack.Options{Shard: 800}, dir); direct.Manifest().ModelHash() != again.Manifest().ModelHash() {
		t.Errorf("got\n%v\nwant\n%v", listing(t, again), listing(t, direct))
	}
}

// TestWhatIsNotCut: one tensor, other formats, symlinks, broken files, sets that are
// not whole.
func TestWhatIsNotCut(t *testing.T) {
	opts := pack.Options{Shard: 500}
	one := open(t, opts, tree(t, map[string]string{"a.safetensors": weights(t, 0, 1), "b.bin": strings.Repeat("x", 900), "c.bin": "x"}))
	wantListing(t, one, "carton.toml", "model/a.safetensors", "model/b.bin", "model/c.bin", "tensor_data/index.toml")
	wantWarnings(t, one, "model/a.safetensors is larger than 500 B, and is not cut: it holds one tensor", "model/b.bin is larger than 500 B, and is not cut: only safetensors and GGUF")
	refused(t, opts, carton.ErrFormat, "can't be cut into shards", tree(t, map[string]string{"a.safetensors": weights(t, 0, 2)[:900]}))
	refused(t, opts, carton.ErrFormat, "can't be cut into shards: is of a form of GGUF", tree(t, map[string]string{"a.gguf": "GGUF\x00\x00\x00\x03" + strings.Repeat("x", 900)}))
	index := `{"weight_map":{"layer.0":"a.safetensors","z":"b.safetensors"}}`
	refused(t, opts, carton.ErrFormat, `names the shard b.safetensors, which is not there: the model can't be cut again`, tree(t, map[string]string{"a.safetensors": weights(t, 0, 2), "a.safetensors.index.json": index}))
	refused(t, opts, carton.ErrInsecurePath, "", tree(t, map[string]string{"a.safetensors": weights(t, 0, 3), "a-00001-of-00003.safetensors": "x"}))
	linked := tree(t, map[string]string{"a.safetensors": weights(t, 0, 3)})
	testenv.Symlink(t, "a.safetensors", filepath.Join(linked, "latest.safetensors"))
	refused(t, opts, pack.ErrOptions, "is a symlink to model/a.safetensors, which is cut into shards", linked)
}
