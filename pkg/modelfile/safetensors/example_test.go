package safetensors_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"

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

func ExampleWrite() {
	tensor := func(name string, elements ...byte) safetensors.WriteTensor {
		return safetensors.WriteTensor{
			Name: name, DType: safetensors.U8, Shape: []int64{int64(len(elements))},
			Open: func() (io.Reader, error) { return bytes.NewReader(elements), nil },
		}
	}
	var file bytes.Buffer
	err := safetensors.Write(&file, map[string]string{"format": "np"}, []safetensors.WriteTensor{tensor("b", 3), tensor("a", 1, 2)})
	fmt.Printf("%q %v\n", file.Bytes()[file.Len()-3:], err)
	h, err := safetensors.ReadHeader(&file)
	fmt.Println(h.Tensors[0].Name, h.DataStart%8, err)
	// Output:
	// "\x01\x02\x03" <nil>
	// a 0 <nil>
}

func ExampleReadIndex() {
	const index = `{"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}`
	x, err := safetensors.ReadIndex(strings.NewReader(index))
	fmt.Println(x.Shards(), err)
	// Output: [model-1-of-2.safetensors model-2-of-2.safetensors] <nil>
}
