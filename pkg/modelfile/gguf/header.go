package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// Limits on what is read.
const (
	// MaxHeaderBytes is the longest header: ten times that of the largest
	// vocabularies.
	MaxHeaderBytes = 100_000_000
	// MaxTensors is the most tensors of one file, and MaxKeys the most keys.
	MaxTensors = 200_000
	MaxKeys    = 65_536
	// MaxKeptBytes is about how much memory a header's content may take.
	MaxKeptBytes = 48 << 20
	// MaxName is the longest name of a key or a tensor, in bytes.
	MaxName = 65_535
	// MaxValue is the longest string that is kept as a key's value, in bytes.
	MaxValue = 4096
	// MaxDepth is how deep arrays may nest.
	MaxDepth = 4
	// MaxDims is the most dimensions of a tensor.
	MaxDims = 4
	// DefaultAlign is the alignment of files that don't say; MaxAlign the largest.
	DefaultAlign = 32
	MaxAlign     = 1 << 20
)

// maxEnd is far over any file, and keeps sums of what lies below it in an int64.
const maxEnd = 1 << 60

// The kinds of fault that a file can have. One that is a git-lfs pointer is
// modelfile.ErrPointer.
var (
	// ErrFormat: the bytes are no GGUF file, or a broken one.
	ErrFormat = errors.New("breaks the GGUF format")
	// ErrVersion: the file is of a version of the format that is not read here.
	ErrVersion = errors.New("is of a form of GGUF that is not read here")
)

// Header is what a file says of its model and its tensors.
type Header struct {
	// Version is the format's.
	Version uint32
	// Align is what tensors begin at a multiple of, in bytes.
	Align int64
	// Keys are in the file's order.
	Keys []Key
	// Tensors are in the file's order.
	Tensors []Tensor
	// DataStart is the offset in the file at which the tensors' bytes begin, in bytes;
	// of a file without tensors it may lie behind its end.
	DataStart int64
	// Findings say what looks wrong, and is read all the same: a clause each, whose
	// subject is the file.
	Findings []string
}

// Key is one key and its value.
type Key struct {
	Name string
	Type ValueType
	// Value is a uint64, int64, float64, bool or string; nil of an array, and of a
	// string that is longer than [MaxValue].
	Value any
	// Bytes is the size of the value: of a string its length, of an array all of it.
	Bytes int64
	// Begin and End are where in the file the key is, its name included.
	Begin, End int64
}

// Tensor is one tensor of a file.
type Tensor struct {
	Name string
	Type Type
	// Shape has a length a dimension, slowest first; none for a scalar.
	Shape []int64
	// Offset counts from [Header] DataStart. Bytes is -1 where the type is not known
	// here.
	Offset, Bytes int64
}

// ReadHeader reads the header at the beginning of r, a file of size bytes, and
// little behind it. It checks that the tensors lie within the file, unless size is
// -1, for one that is not known. Errors wrap ErrFormat, ErrVersion or
// modelfile.ErrPointer; a file that ends inside the header is also
// io.ErrUnexpectedEOF. An error of r itself is returned wrapped.
func ReadHeader(r io.Reader, size int64) (*Header, error) {
	p := newParser(r, size)
	h, err := p.header()
	if p.source.Err != nil {
		return nil, fmt.Errorf("read header: %w", p.source.Err)
	}
	if err == nil {
		err = h.check(size)
	}
	switch {
	case err == nil:
		return h, nil
	case errtext.IsLimit(err):
		return nil, fmt.Errorf("header: %w", err)
	case p.known: // the bytes are GGUF
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil, err
}

// End returns where the last tensor ends, without the padding behind it, in bytes;
// of a file without tensors where its header ends.
func (h *Header) End() int64 {
	end := int64(0)
	for i := range h.Tensors {
		end = max(end, h.DataStart+h.Tensors[i].Offset+max(h.Tensors[i].Bytes, 0))
	}
	if len(h.Tensors) == 0 && len(h.Keys) > 0 {
		end = h.Keys[len(h.Keys)-1].End
	}
	return end
}

// check checks names and where tensors lie.
func (h *Header) check(size int64) error {
	if name, twice := firstTwice(len(h.Keys), func(i int) string { return h.Keys[i].Name }); twice {
		return fmt.Errorf("key %s occurs twice", quote(name))
	}
	if name, twice := firstTwice(len(h.Tensors), func(i int) string { return h.Tensors[i].Name }); twice {
		return fmt.Errorf("tensor %s occurs twice", quote(name))
	}
	if err := h.checkSpans(); err != nil {
		return err
	}
	if size < 0 || len(h.Tensors) == 0 {
		return nil
	}
	end := h.End()
	switch {
	case end > size:
		return fmt.Errorf("its tensors end at %d, and the file has %d bytes", end, size)
	case size > align(end, h.Align):
		h.Findings = append(h.Findings, fmt.Sprintf("has %d bytes behind its last tensor, which belong to none",
			size-end))
	}
	return nil
}

// checkSpans refuses tensors that share bytes. A tensor of unknown size has one
// byte at least.
func (h *Header) checkSpans() error {
	order := make([]int32, len(h.Tensors))
	for i := range order {
		order[i] = int32(i) // #nosec G115 -- at most MaxTensors
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(h.Tensors[a].Offset, h.Tensors[b].Offset) })
	end, unknown, gap := int64(0), false, false
	for i, n := range order {
		t := &h.Tensors[n]
		switch {
		case t.Offset < end:
			return fmt.Errorf("tensor %s: begins at %d of the data, inside another that ends at %d", quote(t.Name),
				t.Offset, end)
		case !unknown && t.Offset != align(end, h.Align), int(n) != i:
			gap = true
		}
		unknown = t.Bytes < 0
		end = t.Offset + max(t.Bytes, 1)
	}
	if gap {
		h.Findings = append(h.Findings,
			"has its tensors in another order than their bytes, or gaps between them: llama.cpp refuses such a file")
	}
	return nil
}

// firstTwice returns a name that two of n things have.
func firstTwice(n int, name func(i int) string) (string, bool) {
	names := make([]string, n)
	for i := range names {
		names[i] = name(i)
	}
	slices.Sort(names)
	for i := 1; i < n; i++ {
		if names[i] == names[i-1] {
			return names[i], true
		}
	}
	return "", false
}

// align rounds up to a multiple of a, a power of two.
func align(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }

// quote returns a name from outside for an error's text.
func quote(name string) string { return errtext.Quoted(name) }
