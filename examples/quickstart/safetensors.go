package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
)

// tensor is a named view of parameters of a network, in C order.
type tensor struct {
	name   string
	shape  []int
	values []*float64
}

// tensors returns the network's parameters, in the order in which they are
// written.
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
		{"input.mean", []int{features}, pointers(n.mean[:])},
		{"input.std", []int{features}, pointers(n.std[:])},
		{"hidden.weight", []int{hidden, features}, hiddenWeight},
		{"hidden.bias", []int{hidden}, pointers(n.hiddenBias[:])},
		{"output.weight", []int{classes, hidden}, outputWeight},
		{"output.bias", []int{classes}, pointers(n.outputBias[:])},
	}
}

func pointers(values []float64) []*float64 {
	out := make([]*float64, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// safetensors returns the parameters as a safetensors file of float32: the
// header's length as a little-endian uint64, the header as JSON, padded with
// spaces to a multiple of 8, and the values.
// https://huggingface.co/docs/safetensors
func (n *network) safetensors() ([]byte, error) {
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header := map[string]any{"__metadata__": map[string]string{"format": "np"}}
	var data []byte
	for _, t := range n.tensors() {
		start := len(data)
		for _, v := range t.values {
			data = appendFloat32(data, *v)
		}
		header[t.name] = entry{"F32", t.shape, [2]int{start, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(file, text...), data...), nil
}

func appendFloat32(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
}
