package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// Limits on what is read.
const (
	// MaxHeaderBytes is the largest N: the reference implementation's limit.
	MaxHeaderBytes = 100_000_000
	// MaxTensors is the most tensors that one file may hold, twice what the
	// largest known models have in all their files: each takes memory.
	MaxTensors = 200_000
	// MaxKeptBytes is about how much memory a header's content may take.
	MaxKeptBytes = 48 << 20
	// MaxDims is the most dimensions that a tensor may have.
	MaxDims = 64
)

// maxEnd is far over any file, and keeps sums of what lies below it in an int64.
const maxEnd = 1 << 60

// ErrFormat: the bytes are no safetensors file, or a broken one. One that is a
// git-lfs pointer is modelfile.ErrPointer.
var ErrFormat = errors.New("breaks the safetensors format")

// Header is what a file says of its tensors.
type Header struct {
	// Tensors are in the order of their bytes.
	Tensors []Tensor
	// Metadata is the entry "__metadata__", nil where there is none.
	Metadata map[string]string
	// DataStart is the offset in the file, in bytes, at which the tensors' bytes
	// begin.
	DataStart int64
	// Draft says that the header is written as the format's first draft has it.
	Draft bool
}

// Tensor is one entry of a header.
type Tensor struct {
	Name string
	// DType is the type of the elements, as the format spells it: "F32", "BF16".
	DType string
	// Shape has a length a dimension; none for a scalar.
	Shape []int64
	// Begin and End are the span of its bytes, from [Header] DataStart.
	Begin, End int64
}

// HasType reports whether the format has a type of that name.
func HasType(name string) bool {
	t := dtype.Named(name)
	return t != nil && t.Safetensors()
}

// Size returns the file's size in bytes.
func (h *Header) Size() int64 {
	if len(h.Tensors) == 0 {
		return h.DataStart
	}
	return h.DataStart + h.Tensors[len(h.Tensors)-1].End
}

// ReadHeader reads the header at the beginning of r, a file of size bytes, and
// nothing behind it. It checks that the file is as long as its header says, unless
// size is -1, for one that is not known. Errors wrap ErrFormat or modelfile.ErrPointer; a
// file that ends inside the header is also io.ErrUnexpectedEOF. An error of r
// itself is returned wrapped.
func ReadHeader(r io.Reader, size int64) (*Header, error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	if size >= 0 && n > size-8 {
		return nil, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrFormat, n, size)
	}
	h, err := parse(io.LimitReader(r, n), n)
	if err != nil {
		return nil, err
	}
	if size >= 0 && h.Size() != size {
		return nil, fmt.Errorf("%w: file has %d bytes, its header needs %d", ErrFormat, size, h.Size())
	}
	return h, nil
}

// readLength reads N.
func readLength(r io.Reader) (int64, error) {
	var b [8]byte
	if n, err := io.ReadFull(r, b[:]); err != nil {
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, fmt.Errorf("read header: %w", err)
		}
		return 0, fmt.Errorf("%w: length of the header: got %d of 8 bytes: %w", ErrFormat, n, io.ErrUnexpectedEOF)
	}
	if err := modelfile.CheckPointer(b[:], r); err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint64(b[:])
	if n > MaxHeaderBytes {
		return 0, fmt.Errorf("%w: header of %d bytes, and the format allows %d", ErrFormat, n, MaxHeaderBytes)
	}
	return int64(n), nil
}

// parse reads the n bytes of JSON in r and checks what they say.
func parse(r io.Reader, n int64) (*Header, error) {
	h := &Header{DataStart: 8 + n}
	p := &parser{json: jsonstream.New(r), most: MaxTensors, left: MaxKeptBytes}
	if err := p.header(h); err != nil {
		if source := p.json.SourceError(); source != nil {
			return nil, fmt.Errorf("read header: %w", source)
		}
		if errtext.IsLimit(err) {
			return nil, fmt.Errorf("header: %w", err)
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	if got := p.json.Offset(); got != n {
		return nil, fmt.Errorf("%w: header ends after %d bytes of %d: %w", ErrFormat, got, n, io.ErrUnexpectedEOF)
	}
	if err := check(h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return h, nil
}

// check sorts the tensors by their spans and checks names and spans.
func check(h *Header) error {
	byName := make([]int32, len(h.Tensors))
	for i := range byName {
		byName[i] = int32(i)
	}
	slices.SortFunc(byName, func(a, b int32) int { return cmp.Compare(h.Tensors[a].Name, h.Tensors[b].Name) })
	for i := 1; i < len(byName); i++ {
		if name := h.Tensors[byName[i]].Name; name == h.Tensors[byName[i-1]].Name {
			return fmt.Errorf("tensor %s occurs twice", quote(name))
		}
	}
	slices.SortStableFunc(h.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	end := int64(0)
	for i := range h.Tensors {
		t := &h.Tensors[i]
		want, err := span(t)
		switch {
		case err != nil:
			return fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		case t.End < t.Begin:
			return fmt.Errorf("tensor %s: ends at %d, before it begins at %d", quote(t.Name), t.End, t.Begin)
		case t.End-t.Begin != want:
			return fmt.Errorf("tensor %s: has %d bytes, its shape and type need %d", quote(t.Name), t.End-t.Begin, want)
		case t.Begin < end:
			return fmt.Errorf("tensor %s: begins at %d, inside another that ends at %d", quote(t.Name), t.Begin, end)
		case t.Begin > end:
			return fmt.Errorf("tensor %s: begins at %d, %d bytes after the last one's end",
				quote(t.Name), t.Begin, t.Begin-end)
		}
		end = t.End
	}
	if end > maxEnd {
		return fmt.Errorf("tensors end at %d, which no file can reach", end)
	}
	return nil
}

// span returns how many bytes a tensor of t's shape and type has. Lengths are
// multiplied in their order, as the reference does: behind a zero nothing overflows.
func span(t *Tensor) (int64, error) {
	n, over := uint64(1), uint64(0)
	for _, d := range t.Shape {
		hi, lo := bits.Mul64(n, uint64(d))
		n, over = lo, over|hi
	}
	hi, lo := bits.Mul64(n, uint64(dtype.Named(t.DType).Bits))
	switch {
	case over|hi>>2 != 0: // over 2⁶³ bytes
		return 0, errors.New("its shape is too large for any file")
	case lo%8 != 0:
		return 0, fmt.Errorf("%d elements of %s do not fill whole bytes", n, t.DType)
	}
	return int64(hi<<61 | lo>>3), nil
}

// quote returns a name from outside for an error's text.
func quote(name string) string { return errtext.Quoted(name) }
