package gguf_test

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// specTensor is what the reader below finds.
type specTensor struct {
	name  string
	kind  uint32
	shape []int64 // slowest first
	at    int64   // in the file
	bytes int64
}

// specBlocks are elements and bytes of a block, the bytes as the sum of the parts of
// the structs in ggml/src/ggml-common.h: scales, minima, high bits, quants.
var specBlocks = map[uint32][2]int64{
	0: {1, 4}, 1: {1, 2}, 24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, 28: {1, 8}, 30: {1, 2},
	2: {32, 2 + 16}, 3: {32, 2 + 2 + 16}, 6: {32, 2 + 4 + 16}, 7: {32, 2 + 2 + 4 + 16}, 8: {32, 2 + 32}, 9: {32, 2 + 2 + 32},
	10: {256, 2 + 2 + 256/16 + 256/4}, 11: {256, 2 + 256/8 + 256/4 + 12}, 12: {256, 2 + 2 + 12 + 256/2},
	13: {256, 2 + 2 + 12 + 256/8 + 256/2}, 14: {256, 2 + 256/16 + 3*256/4}, 15: {256, 4 + 256 + 2*256/16},
	16: {256, 2 + 2*256/8}, 17: {256, 2 + 2*256/8 + 256/32}, 22: {256, 2 + 256/4 + 256/16},
	18: {256, 2 + 3*256/8}, 21: {256, 2 + 13*256/32 + 256/64}, 19: {256, 2 + 256/8 + 2*256/32}, 29: {256, 256/8 + 256/16 + 256/32},
	20: {32, 2 + 16}, 23: {256, 2 + 2 + 256/64 + 256/2}, 34: {256, 2 + 4 + (256-16)/5}, 35: {256, 2 + 256/4},
	39: {32, 1 + 16}, 40: {64, 4 + 32}, 41: {128, 2 + 16}, 42: {64, 2 + 16},
}

// readBySpec reads a whole file as docs/gguf.md of ggml describes it, and checks
// nothing: it is written apart from the package, to be held against it. It panics
// where the file ends too soon.
func readBySpec(b []byte) (keys map[string]any, tensors []specTensor) {
	at := 4
	u32 := func() uint32 { at += 4; return binary.LittleEndian.Uint32(b[at-4:]) }
	u64 := func() uint64 { at += 8; return binary.LittleEndian.Uint64(b[at-8:]) }
	text := func() string { n := int(u64()); at += n; return string(b[at-n : at]) }
	if version := u32(); version != 2 && version != 3 {
		panic(fmt.Sprintf("version %d", version))
	}
	nTensors, nKeys := u64(), u64()
	var value func(kind uint32) any
	value = func(kind uint32) any {
		switch kind {
		case 0, 1, 7:
			at++
			return b[at-1]
		case 2, 3:
			at += 2
			return binary.LittleEndian.Uint16(b[at-2:])
		case 4, 5, 6:
			return u32()
		case 8:
			return text()
		case 9:
			of, n := u32(), u64()
			list := []any{}
			for range n {
				list = append(list, value(of))
			}
			return list
		}
		return u64()
	}
	keys = map[string]any{}
	for range nKeys {
		name := text()
		keys[name] = value(u32())
	}
	for range nTensors {
		t := specTensor{name: text(), shape: []int64{}}
		elements := int64(1)
		for range u32() {
			n := int64(u64())
			t.shape, elements = append(t.shape, n), elements*n
		}
		slices.Reverse(t.shape)
		t.kind, t.at = u32(), int64(u64())
		if block, known := specBlocks[t.kind]; known {
			t.bytes = elements / block[0] * block[1]
		}
		tensors = append(tensors, t)
	}
	align := int64(32)
	if n, ok := keys["general.alignment"].(uint32); ok {
		align = int64(n)
	}
	data := (int64(at) + align - 1) / align * align
	for i := range tensors {
		tensors[i].at += data
	}
	return keys, tensors
}
