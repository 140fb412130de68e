package gguf

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// splitKeysBytes is how much room the keys of a part take, in bytes, and what stands
// before all keys.
const splitKeysBytes = 128

// Shards cuts a model, the files with these headers, at its tensors into files of no
// more than most bytes, as gguf-split does; one that holds a single tensor may be larger.
// The first has all keys of the first file, the others those of parts alone, and so
// the default alignment. Of a model that fits into one file there is one shard. A
// tensor whose type is not known here can't be cut: its size is not known.
// https://github.com/ggml-org/llama.cpp/blob/067d44f/tools/gguf-split/gguf-split.cpp
func Shards(headers []*Header, most int64) ([]modelfile.Shard, error) {
	all, err := placesOf(headers)
	if err != nil {
		return nil, err
	}
	first := headers[0]
	cost := make([]int64, len(all))
	for i, t := range all {
		cost[i] = align(t.Bytes, max(first.Align, DefaultAlign)) + int64(len(t.Name)+8*len(t.Shape)) + 24
	}
	room := most - splitKeysBytes - DefaultAlign
	keys := int64(0)
	for _, k := range first.Keys {
		keys += k.End - k.Begin
	}
	cuts := modelfile.Cut(cost, room-keys-first.Align, room)
	if len(cuts) > MaxParts {
		return nil, fmt.Errorf("%w: it would be cut into %d files, and may be into %d", ErrFormat, len(cuts), MaxParts)
	}
	return first.parts(all, cuts), nil
}

// place is a tensor, and which file it is in.
type place struct {
	Tensor
	file int
}

func placesOf(headers []*Header) ([]place, error) {
	var all []place
	names := map[string]bool{}
	for i, h := range headers {
		for _, t := range h.Tensors {
			switch {
			case t.Bytes < 0:
				return nil, fmt.Errorf("%w: tensor %s is of the type %d, which is not known here, and so its size "+
					"is not", ErrFormat, quote(t.Name), t.Type)
			case names[t.Name]:
				return nil, fmt.Errorf("%w: tensor %s is in two of the files", ErrFormat, quote(t.Name))
			}
			names[t.Name] = true
			t.Offset += h.DataStart
			all = append(all, place{t, i})
		}
	}
	return all, nil
}

// parts makes the files.
func (h *Header) parts(all []place, cuts [][]int) []modelfile.Shard {
	shards := make([]modelfile.Shard, len(cuts))
	for i, numbers := range cuts {
		var s modelfile.Shard
		alignment, n := int64(DefaultAlign), uint64(3)
		var keys []modelfile.Piece
		if i == 0 {
			alignment = h.Align
			for _, k := range h.Keys {
				if !strings.HasPrefix(k.Name, keySplitPrefix) {
					keys = modelfile.AddSpan(keys, 0, k.Begin, k.End-k.Begin)
					n++
				}
			}
		}
		begin := binary.LittleEndian.AppendUint32([]byte("GGUF"), h.Version)
		begin = binary.LittleEndian.AppendUint64(begin, uint64(len(numbers)))
		begin = binary.LittleEndian.AppendUint64(begin, n)
		s.Pieces = append([]modelfile.Piece{{Text: begin}}, keys...)

		text := appendKey(nil, keySplitNumber, Uint16, uint64(i))
		text = appendKey(text, keySplitTensors, Int32, uint64(len(all)))
		text = appendKey(text, keySplitCount, Uint16, uint64(len(cuts))) // the last: gguf-split learns it at the end
		var data []modelfile.Piece
		offset := int64(0)
		for _, number := range numbers {
			t := &all[number]
			s.Tensors = append(s.Tensors, t.Name)
			text = appendTensor(text, &t.Tensor, offset)
			end := offset + t.Bytes
			offset = align(end, alignment)
			data = modelfile.AddSpan(data, t.file, t.Offset, t.Bytes)
			if offset > end {
				data = append(data, modelfile.Piece{Text: make([]byte, offset-end)})
			}
		}
		at := int64(len(text))
		for _, p := range s.Pieces {
			at += p.Size()
		}
		text = append(text, make([]byte, align(at, alignment)-at)...)
		s.Pieces = slices.Concat(s.Pieces, []modelfile.Piece{{Text: text}}, data)
		shards[i] = s
	}
	return shards
}

// appendKey writes a key with a number.
func appendKey(b []byte, name string, t ValueType, value uint64) []byte {
	b = append(binary.LittleEndian.AppendUint64(b, uint64(len(name))), name...)
	b = binary.LittleEndian.AppendUint32(b, uint32(t))
	return append(b, binary.LittleEndian.AppendUint64(nil, value)[:valueBytes[t]]...)
}

// appendTensor writes what says what a tensor is, and where.
func appendTensor(b []byte, t *Tensor, offset int64) []byte {
	b = append(binary.LittleEndian.AppendUint64(b, uint64(len(t.Name))), t.Name...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Shape))) // #nosec G115 -- at most MaxDims
	for _, d := range slices.Backward(t.Shape) {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(t.Type))
	return binary.LittleEndian.AppendUint64(b, uint64(offset))
}
