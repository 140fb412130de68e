package safetensors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

func itoa(n int) string { return strconv.Itoa(n) }

// FuzzReadHeader: no input crashes it, every error is one of the two kinds, and
// what it accepts is JSON whose spans lie side by side.
func FuzzReadHeader(f *testing.F) {
	f.Add(file(`{}`, 0))
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"F4","shape":[2],"data_offsets":[24,25]}}  `, 25))
	f.Add(file(`{"a":{"dtype":"float16","shape":[1,16,256],"offsets":[0,8192]}}`, 8192))
	f.Add(file(`{"é\ud83d\ude00":{"x":[{"y":null}],"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1))
	f.Add([]byte("version https://git-lfs.github.com/spec/v1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := safetensors.ReadHeader(bytes.NewReader(b), -1)
		if err != nil {
			if !errors.Is(err, safetensors.ErrFormat) && !errors.Is(err, modelfile.ErrPointer) {
				t.Fatalf("got %v, which is of no kind", err)
			}
			return
		}
		if !json.Valid(b[8:h.DataStart]) {
			t.Fatalf("accepted %q, which is no JSON", b[8:h.DataStart])
		}
		end := int64(0)
		for _, tensor := range h.Tensors {
			if tensor.Begin != end || tensor.End < end || (tensor.End-end)*8 != elements(&safetensors.Header{Tensors: []safetensors.Tensor{tensor}})*dtype.Named(tensor.DType).Bits {
				t.Fatalf("accepted %+v after %d", tensor, end)
			}
			end = tensor.End
		}
		if h.Size() < h.DataStart || elements(h) < 0 {
			t.Fatalf("size %d, elements %d", h.Size(), elements(h))
		}
	})
}
