package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// tensor is a named view of parameters of a network, in C order.
type tensor struct {
	name   string
	shape  []int64
	values []*float64
}

// tensors returns the network's parameters.
func (n *network) tensors() []tensor {
	hiddenWeight := make([]*float64, 0, hidden*features)
	for i := range n.hiddenWeight {
		hiddenWeight = append(hiddenWeight, pointers(n.hiddenWeight[i][:])...)
	}
	outputWeight := make([]*float64, 0, classes*hidden)
	for k := range n.outputWeight {
		outputWeight = append(outputWeight, pointers(n.outputWeight[k][:])...)
	}
	return []tensor{
		{"input.mean", []int64{features}, pointers(n.mean[:])},
		{"input.std", []int64{features}, pointers(n.std[:])},
		{"hidden.weight", []int64{hidden, features}, hiddenWeight},
		{"hidden.bias", []int64{hidden}, pointers(n.hiddenBias[:])},
		{"output.weight", []int64{classes, hidden}, outputWeight},
		{"output.bias", []int64{classes}, pointers(n.outputBias[:])},
	}
}

func pointers(values []float64) []*float64 {
	out := make([]*float64, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// safetensors returns the parameters as a safetensors file of float32.
// https://huggingface.co/docs/safetensors
func (n *network) safetensors() ([]byte, error) {
	// Of one type, tensors lie in the file in the order of their names.
	byName := slices.SortedFunc(slices.Values(n.tensors()),
		func(a, b tensor) int { return strings.Compare(a.name, b.name) })
	var header []safetensors.Tensor
	var data []byte
	for _, t := range byName {
		header = append(header, safetensors.Tensor{Name: t.name, DType: "F32", Shape: t.shape})
		for _, v := range t.values {
			data = appendFloat32(data, *v)
		}
	}
	var file bytes.Buffer
	err := safetensors.WriteHeader(&file, map[string]string{"format": "np"}, header)
	return append(file.Bytes(), data...), err
}

func appendFloat32(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
}
