package safetensors_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

func ExampleReadHeader() {
	const header = `{"fc1.weight":{"dtype":"BF16","shape":[32,16],"data_offsets":[0,1024]}}`
	h, err := safetensors.ReadHeader(bytes.NewReader(file(header, 1024)), -1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range h.Tensors {
		fmt.Println(t.Name, t.DType, t.Shape, t.End-t.Begin)
	}
	// Output: fc1.weight BF16 [32 16] 1024
}

func ExampleWriteHeader() {
	var file bytes.Buffer
	err := safetensors.WriteHeader(&file, map[string]string{"format": "np"}, []safetensors.Tensor{
		{Name: "b", DType: "U8", Shape: []int64{1}}, {Name: "a", DType: "U8", Shape: []int64{2}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	file.Write([]byte{1, 2, 3}) // two of a, one of b
	h, err := safetensors.ReadHeader(&file, int64(file.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range h.Tensors {
		fmt.Println(t.Name, t.Begin, t.End)
	}
	// Output:
	// a 0 2
	// b 2 3
}

func ExampleReadIndex() {
	const index = `{"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}`
	x, err := safetensors.ReadIndex(strings.NewReader(index))
	fmt.Println(x.Shards(), err)
	// Output: [model-1-of-2.safetensors model-2-of-2.safetensors] <nil>
}
