package safetensors_test

import (
	"bytes"
	"fmt"

	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

func ExampleReadHeader() {
	const header = `{"fc1.weight":{"dtype":"BF16","shape":[32,16],"data_offsets":[0,1024]}}`
	h, err := safetensors.ReadHeader(bytes.NewReader(file(header, 1024)))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range h.Tensors {
		fmt.Println(t.Name, t.DType, t.Shape, t.Elements())
	}
	// Output: fc1.weight BF16 [32 16] 512
}
