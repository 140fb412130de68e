package inspect

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
)

// A model counts once, however many copies of it lie side by side: as shards with
// their index, in one file, as a variant of another type.
func TestCopiesOfAModelCountOnce(t *testing.T) {
	one := func(dtype string, names ...string) []byte {
		var entries []entry
		for _, n := range names {
			entries = append(entries, entry{n, dtype, []int64{10}})
		}
		return safetensorsOf(0, entries...)
	}
	index := func(shards ...string) []byte {
		var parts []string
		for i, s := range shards {
			parts = append(parts, `"`+string(rune('a'+i))+`":"`+s+`"`)
		}
		return []byte(`{"weight_map":{` + strings.Join(parts, ",") + `}}`)
	}
	type files = map[string][]byte
	for name, c := range map[string]struct {
		files     files
		symlinks  map[string]string
		want      int64
		precision string
	}{
		"shards, consolidated and a variant": {files: files{
			"model/model-1.safetensors": one("F32", "a"), "model/model-2.safetensors": one("F32", "b"), "model/model.safetensors.index.json": index("model-1.safetensors", "model-2.safetensors"),
			"model/consolidated.safetensors": one("F32", "wq", "wk"), "model/model.fp16.safetensors": one("F16", "a", "b"),
		}, want: 20, precision: "float32"},
		"shards and a sharded variant": {files: files{
			"model/m-1.safetensors": one("F32", "a"), "model/m.safetensors.index.json": index("m-1.safetensors"),
			"model/m.fp16-1.safetensors": one("F16", "a"), "model/m.fp16.safetensors.index.json": index("m.fp16-1.safetensors"),
		}, want: 10, precision: "float32"},
		"variant with an index of its own name": {files: files{
			"model/model-1.safetensors": one("F32", "a"), "model/model.safetensors.index.json": index("model-1.safetensors"),
			"model/model.fp16-1.safetensors": one("F16", "a"), "model/model.safetensors.index.fp16.json": index("model.fp16-1.safetensors"),
		}, want: 10, precision: "float32"},
		"variant with its index alone": {files: files{
			"model/model.fp16-1.safetensors": one("F16", "a"), "model/model.safetensors.index.fp16.json": index("model.fp16-1.safetensors"), "model/x.safetensors": one("F32", "a"),
		}, want: 10, precision: "float16"},
		"variant without an index":       {files: files{"model/unet/d.safetensors": one("F32", "a"), "model/unet/d.fp16.safetensors": one("F16", "a")}, want: 10, precision: "float32"},
		"variant of a variant":           {files: files{"model/d.safetensors": one("F32", "a"), "model/d.non_ema.fp16.safetensors": one("F16", "a")}, want: 10, precision: "float32"},
		"variant alone":                  {files: files{"model/d.fp16.safetensors": one("F16", "a")}, want: 10, precision: "float16"},
		"other tensors by a like name":   {files: files{"model/d.safetensors": one("F32", "a"), "model/d.head.safetensors": one("F32", "b")}, want: 20, precision: "float32"},
		"parts of other names":           {files: files{"model/rank-0.safetensors": one("F32", "a"), "model/rank-1.safetensors": one("F16", "a")}, want: 20, precision: "float32,float16"},
		"components in folders":          {files: files{"model/unet/d.safetensors": one("F32", "a"), "model/vae/d.safetensors": one("F16", "a")}, want: 20, precision: "float32,float16"},
		"broken index":                   {files: files{"model/a.safetensors": one("F32", "a"), "model/m.safetensors.index.json": []byte("{}")}, want: 10, precision: "float32"},
		"index that lacks a shard":       {files: files{"model/a.safetensors": one("F32", "a"), "model/m.safetensors.index.json": index("a.safetensors", "none.safetensors")}, want: 10, precision: "float32"},
		"a copy that counts elsewhere":   {files: files{"model/a.safetensors": one("F32", "a"), "model/m.safetensors.index.json": index("a.safetensors"), "model/x.safetensors": one("F32", "x"), "model/sub/x.safetensors": one("F32", "x")}, want: 20, precision: "float32"},
		"an index beside model/ is none": {files: files{"model/a.safetensors": one("F32", "a"), "misc/m.safetensors.index.json": index("b.safetensors")}, want: 10, precision: "float32"},
		"a hub cache": {
			files: files{
				"model/blobs/1": one("F32", "a"), "model/blobs/2": one("F32", "b"), "model/blobs/3": index("m-1.safetensors", "m-2.safetensors"), "model/blobs/4": one("F32", "c"),
			},
			symlinks: map[string]string{
				"model/snap/m-1.safetensors": "../blobs/1", "model/snap/m-2.safetensors": "../blobs/2", "model/snap/m.safetensors.index.json": "../blobs/3",
				"model/snap/consolidated.safetensors": "../blobs/4",
			},
			want: 20, precision: "float32",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := describe(t, cartontest.New(c.files, c.symlinks), Options{})
			if got.Parameters != c.want || got.Precision != c.precision {
				t.Errorf("got %d parameters of %s, want %d of %s", got.Parameters, got.Precision, c.want, c.precision)
			}
		})
	}
}

func TestAShardThatIsMissingIsNoted(t *testing.T) {
	files := sharded(func(i int) string { return strings.Replace(right(i), "07", "77", 1) }, nil)
	want := indexPath + ": names the shard model-77.safetensors, which is not there\n"
	if got := describe(t, cartontest.New(files, nil), Options{}); noteText(got.Notes) != want || got.Notes[0].Err == nil {
		t.Errorf("got %q, want %q", noteText(got.Notes), want)
	}
}

// Shards of torch.save have an index, too, of the same form.
func TestAMissingShardOfTorchSaveIsNoted(t *testing.T) {
	const index = "model/pytorch_model.bin.index.json"
	files := map[string][]byte{
		index: []byte(`{"metadata":null,"weight_map":{"a":"pytorch_model-1.bin","b":"pytorch_model-2.bin"}}`), "model/pytorch_model-1.bin": nil,
		"model/a.safetensors": safetensorsOf(0, entry{"a", "F32", []int64{10}}),
	}
	got := describe(t, cartontest.New(files, nil), Options{})
	if want := index + ": names the shard pytorch_model-2.bin, which is not there\n"; noteText(got.Notes) != want || got.Parameters != 10 {
		t.Errorf("got %q and %d parameters, want %q and 10", noteText(got.Notes), got.Parameters, want)
	}
}
