package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// weight is a safetensors file of any size that nobody keeps: its bytes are made
// when they are asked for. After the header comes one mebibyte of noise again and
// again, each with its number at the start, so that no two are the same.
type weight struct {
	header []byte // headerSize bytes
	size   int64
	noise  []byte // one mebibyte
}

const (
	mebibyte   = 1 << 20
	headerSize = 64 << 10
	// wanted is the name of the tensor that lies in the middle.
	wanted = "block.wanted.weight"
)

type tensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// newWeight describes a file of size bytes: tensors of up to 1 GiB, and in the
// middle one of middle bytes, which is a multiple of 4.
func newWeight(size, middle int64) (*weight, error) {
	data := size - headerSize
	if data < middle || data%4 != 0 || middle%4 != 0 {
		return nil, fmt.Errorf("describe %d bytes with a tensor of %d: want more, and multiples of 4", size, middle)
	}
	tensors := map[string]tensor{}
	add := func(name string, from, to int64) {
		if from < to {
			tensors[name] = tensor{"F32", []int64{(to - from) / 4}, [2]int64{from, to}}
		}
	}
	half := half(data, middle)
	rest := func(from, to int64) {
		for ; from < to; from += 1 << 30 {
			add(fmt.Sprintf("block.%03d.weight", len(tensors)), from, min(from+1<<30, to))
		}
	}
	rest(0, half)
	add(wanted, half, half+middle)
	rest(half+middle, data)
	text, err := json.Marshal(tensors)
	if err != nil {
		return nil, err
	}
	if len(text) > headerSize-8 {
		return nil, fmt.Errorf("describe %d bytes: the header takes %d, want at most %d", size, len(text), headerSize-8)
	}
	w := &weight{header: bytes.Repeat([]byte{' '}, headerSize), size: size, noise: make([]byte, mebibyte)}
	binary.LittleEndian.PutUint64(w.header, headerSize-8)
	copy(w.header[8:], text)
	_, _ = rand.NewChaCha8([32]byte{}).Read(w.noise)
	return w, nil
}

// ReadAt implements io.ReaderAt.
func (w *weight) ReadAt(p []byte, off int64) (int, error) {
	total := 0
	for total < len(p) && off < w.size {
		var n int
		within := off % mebibyte
		switch {
		case off < headerSize:
			n = copy(p[total:], w.header[off:])
		case within < 8:
			var number [8]byte
			binary.LittleEndian.PutUint64(number[:], uint64(off/mebibyte))
			n = copy(p[total:], number[within:])
		default:
			n = copy(p[total:], w.noise[within:])
		}
		n = int(min(int64(n), w.size-off))
		total += n
		off += int64(n)
	}
	if total < len(p) {
		return total, io.EOF
	}
	return total, nil
}

// middle returns the bytes of the wanted tensor, which are so many.
func (w *weight) middle(bytes int64) io.Reader {
	return io.NewSectionReader(w, headerSize+half(w.size-headerSize, bytes), bytes)
}

// half is where the wanted tensor begins in the data.
func half(data, middle int64) int64 { return (data - middle) / 8 * 4 }

// sumAll returns the sha256 of all that r has, in hex.
func sumAll(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(h, r, make([]byte, mebibyte)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sumOf returns the sha256 of text, in hex.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// info is carton.toml.
var info = strings.TrimLeft(`
spec_version = 1
model_name = "made"

[runner]
runner_name = "python"
required_framework_version = "=3.11"
runner_compat_version = 1
`, "\n")
