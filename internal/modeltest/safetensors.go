package modeltest

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// Tensor is a tensor of a safetensors file.
type Tensor struct {
	Name, DType string
	Shape       []int64
	Data        []byte
}

// Safetensors returns a safetensors file of these tensors in this order, its
// header not padded, as the format allows: what this project's own writer makes
// is tidier. metadata may be nil.
func Safetensors(t testing.TB, metadata map[string]string, tensors ...Tensor) []byte {
	t.Helper()
	var entries []string
	if metadata != nil {
		entries = append(entries, `"__metadata__":`+marshal(t, metadata))
	}
	var data []byte
	for _, x := range tensors {
		shape := x.Shape
		if shape == nil {
			shape = []int64{}
		}
		entries = append(entries, fmt.Sprintf(`%s:{"dtype":%s,"shape":%s,"data_offsets":[%d,%d]}`,
			marshal(t, x.Name), marshal(t, x.DType), marshal(t, shape), len(data), len(data)+len(x.Data)))
		data = append(data, x.Data...)
	}
	header := "{" + strings.Join(entries, ",") + "}"
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}
