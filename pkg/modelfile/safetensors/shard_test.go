package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// plainTensor is what plainRead finds: as the format's README has it, and no more.
type plainTensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// plainRead reads a file by the format's README, sharing nothing with the package.
func plainRead(t *testing.T, b []byte) (metadata map[string]string, tensors map[string]plainTensor, data []byte) {
	t.Helper()
	n := binary.LittleEndian.Uint64(b)
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &raw); err != nil {
		t.Fatal(err)
	}
	tensors = map[string]plainTensor{}
	for name, text := range raw {
		var x plainTensor
		var to any = &x
		if name == "__metadata__" {
			to = &metadata
		}
		if err := json.Unmarshal(text, to); err != nil {
			t.Fatal(err)
		}
		if name != "__metadata__" {
			tensors[name] = x
		}
	}
	return metadata, tensors, b[8+n:]
}

func joined(s modelfile.Shard, files ...[]byte) []byte {
	var b []byte
	for _, p := range s.Pieces {
		if p.Text != nil {
			b = append(b, p.Text...)
		} else {
			b = append(b, files[p.File][p.Off:p.Off+p.Len]...)
		}
	}
	return b
}

// TestShards: whatever the size, an independent reader finds each tensor once, with
// its bytes, and the metadata; no file is larger but one of a single tensor.
func TestShards(t *testing.T) {
	var in []modeltest.Tensor
	for i, d := range []string{"F32", "BF16", "U8", "F8_E4M3", "F32", "BOOL", "F64"} {
		size := map[string]int{"F32": 4, "BF16": 2, "F64": 8}[d]
		n := 10 + 100*(i%3)
		in = append(in, modeltest.Tensor{Name: fmt.Sprintf("layer.%d \"é\"", i), DType: d, Shape: []int64{int64(n), 2}, Data: bytes.Repeat([]byte{byte('a' + i)}, 2*n*max(size, 1))})
	}
	in = append(in, modeltest.Tensor{Name: "empty", DType: "F32", Shape: []int64{0, 4}})
	whole := modeltest.Safetensors(t, map[string]string{"format": "pt"}, in...)
	first, second := modeltest.Safetensors(t, map[string]string{"format": "pt"}, in[:3]...), modeltest.Safetensors(t, nil, in[3:]...)
	for _, most := range []int64{1, 700, 1500, 1 << 20} {
		for _, files := range [][][]byte{{whole}, {first, second}} {
			var headers []*safetensors.Header
			for _, b := range files {
				h, err := open(b)
				if err != nil {
					t.Fatal(err)
				}
				headers = append(headers, h)
			}
			shards, err := safetensors.Shards(headers, most)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string][]byte{}
			for _, s := range shards {
				b := joined(s, files...)
				if _, err := open(b); err != nil {
					t.Fatal(err)
				}
				metadata, tensors, data := plainRead(t, b)
				if metadata["format"] != "pt" || len(tensors) != len(s.Tensors) || int64(len(b)) > most && len(tensors) > 1 {
					t.Errorf("most %d: got a file of %d bytes with %d tensors and %v", most, len(b), len(tensors), metadata)
				}
				for name, x := range tensors {
					if found[name] != nil {
						t.Errorf("%s is there twice", name)
					}
					found[name] = append([]byte(x.DType+fmt.Sprint(x.Shape)), data[x.Offsets[0]:x.Offsets[1]]...)
				}
			}
			if len(found) != len(in) || (most == 1<<20) != (len(shards) == 1) {
				t.Errorf("most %d: got %d tensors in %d files", most, len(found), len(shards))
			}
			for _, x := range in {
				if want := append([]byte(x.DType+fmt.Sprint(x.Shape)), x.Data...); !bytes.Equal(found[x.Name], want) {
					t.Errorf("most %d: %s is another", most, x.Name)
				}
			}
		}
	}
	h, _ := open(whole)
	if _, err := safetensors.Shards([]*safetensors.Header{h, h}, 1); !errors.Is(err, safetensors.ErrFormat) {
		t.Errorf("got %v, want an error for tensors that are there twice", err)
	}
}

func TestWriteIndex(t *testing.T) {
	b, err := safetensors.WriteIndex(map[string]string{"b": "m-2", "a<": "m-1"}, 12)
	const want = `{
  "metadata": {
    "total_size": 12
  },
  "weight_map": {
    "a<": "m-1",
    "b": "m-2"
  }
}
`
	if err != nil || string(b) != want {
		t.Errorf("got %s, %v", b, err)
	}
	x, err := safetensors.ReadIndex(bytes.NewReader(b))
	if err != nil || x.TotalSize != 12 || x.Files["a<"] != "m-1" {
		t.Errorf("got %+v, %v", x, err)
	}
}
