package modeltest

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Raw is a value's type and bytes, as a test wants them.
type Raw []byte

// GGUFTensor is a tensor of a GGUF file. Dims are as the file has them, the fastest
// first; the data are as long as the type makes them.
type GGUFTensor struct {
	Name string
	Type uint32
	Dims []uint64
	Data []byte
}

// GGUFOf returns a tensor for [GGUF].
func GGUFOf(name string, kind uint32, dims []uint64, data []byte) GGUFTensor {
	return GGUFTensor{Name: name, Type: kind, Dims: dims, Data: data}
}

// GGUF returns a GGUF file of version 3 as llama.cpp writes it: all tensors padded,
// the last too. keys are names and values in turn: a number of any size but int, a
// bool, a string, a slice of numbers or strings, or Raw. align is what they say, or 32.
func GGUF(t testing.TB, align int, keys []any, tensors ...GGUFTensor) []byte {
	t.Helper()
	b := append([]byte("GGUF"), 3, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(keys)/2))
	for i := 0; i < len(keys); i += 2 {
		b = append(ggufText(b, keys[i].(string)), ggufValue(t, keys[i+1])...)
	}
	pad := func(b []byte) []byte { return append(b, make([]byte, -len(b)&(align-1))...) }
	var data []byte
	for _, x := range tensors {
		b = ggufText(b, x.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(x.Dims)))
		for _, d := range x.Dims {
			b = binary.LittleEndian.AppendUint64(b, d)
		}
		b = binary.LittleEndian.AppendUint32(b, x.Type)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
		data = pad(append(data, x.Data...))
	}
	return append(pad(b), data...)
}

func ggufText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// ggufValue writes a value behind its type.
func ggufValue(t testing.TB, v any) []byte {
	t.Helper()
	if raw, ok := v.(Raw); ok {
		return raw
	}
	list := func(elements any, n int) []byte {
		kind, one := ggufPlain(t, elements)
		b := binary.LittleEndian.AppendUint32([]byte{9, 0, 0, 0}, kind)
		return append(binary.LittleEndian.AppendUint64(b, uint64(n)), one...)
	}
	switch v := v.(type) {
	case []string:
		b := binary.LittleEndian.AppendUint64([]byte{9, 0, 0, 0, 8, 0, 0, 0}, uint64(len(v)))
		for _, s := range v {
			b = ggufText(b, s)
		}
		return b
	case []int32:
		return list(v, len(v))
	case []float32:
		return list(v, len(v))
	case []bool:
		return list(v, len(v))
	case string:
		return ggufText([]byte{8, 0, 0, 0}, v)
	}
	kind, b := ggufPlain(t, v)
	return append(binary.LittleEndian.AppendUint32(nil, kind), b...)
}

// ggufPlain returns the type of a number, or of the elements of a slice, and their
// bytes.
func ggufPlain(t testing.TB, v any) (kind uint32, b []byte) {
	t.Helper()
	switch v.(type) {
	case uint8:
		kind = 0
	case int8:
		kind = 1
	case uint16:
		kind = 2
	case int16:
		kind = 3
	case uint32:
		kind = 4
	case int32, []int32:
		kind = 5
	case float32, []float32:
		kind = 6
	case bool, []bool:
		kind = 7
	case uint64:
		kind = 10
	case int64:
		kind = 11
	case float64:
		kind = 12
	default:
		t.Fatalf("GGUF has no type for %T", v)
	}
	var out bytes.Buffer
	if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
		t.Fatal(err)
	}
	return kind, out.Bytes()
}
