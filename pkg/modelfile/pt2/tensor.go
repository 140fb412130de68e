package pt2

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/carton-oci/carton-oci/internal/dtype"
	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// maxBytes is far over any file, and keeps sums of what lies below it in an
// int64.
const maxBytes = 1 << 60

var errTooLarge = errors.New("its shape is too large for any file")

// Tensor is a named view of a storage.
type Tensor struct {
	Name string
	// DType is the type of the elements as safetensors spells it ("F32", "I64",
	// "BF16"; "C32" and "C128", which safetensors does not have), "" where it is
	// not known.
	DType string
	// Shape and Stride have a number a dimension, in elements, none for a scalar;
	// StorageOffset is the first element's place in the storage. Shape is nil where
	// it is not known.
	Shape, Stride []int64
	StorageOffset int64
	// File is the file that holds the storage, without the root folder.
	File string
	// Offset is where the storage begins in the archive, as its directory has it; Read
	// checks it. It is -1 where the bytes are no raw storage: pickled or compressed.
	Offset int64
	// Param says that the tensor is a parameter, not a buffer.
	Param bool
	// Pickled says that only torch can read it.
	Pickled bool
	// BigEndian says that the elements' bytes are in that order in the archive;
	// what Read returns is not.
	BigEndian bool

	entry *zipdir.Entry
	why   string // it can't be read; "" where it can
}

// Elements returns how many elements the tensor has: the product of its shape.
func (t *Tensor) Elements() int64 {
	n, _ := dtype.Size(t.Shape, 1) // checked when the archive was opened
	return n
}

// Bytes returns how many bytes the elements take, -1 where DType is not known.
func (t *Tensor) Bytes() int64 {
	if t.DType == "" {
		return -1
	}
	return t.Elements() * t.elementSize()
}

// elementSize is that of an element in bytes, of a type that is known.
func (t *Tensor) elementSize() int64 { return dtype.Named(t.DType).Bytes() }

// Contiguous reports whether the elements lie in the storage in C order, without
// gaps.
func (t *Tensor) Contiguous() bool {
	want := int64(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		if t.Shape[i] == 0 {
			return true
		}
		if t.Shape[i] != 1 && t.Stride[i] != want {
			return false
		}
		want *= t.Shape[i]
	}
	return true
}

// Unreadable says why Read can't read the tensor, as in "is pickled"; "" where it
// can.
func (t *Tensor) Unreadable() string { return t.why }

// Span returns the bytes of the archive that the elements lie in, offset and
// length: for a contiguous tensor, exactly its own. They are -1 where Read can't
// read it.
func (t *Tensor) Span() (off, n int64) {
	if t.why != "" {
		return -1, -1
	}
	first, count, _ := t.extent() // checked when the archive was opened
	size := t.elementSize()
	return t.Offset + first*size, count * size
}

// Plain reports whether the bytes of [Tensor.Span] are what Read returns.
func (t *Tensor) Plain() bool { return t.Contiguous() && !t.swapped() }

// swapped reports whether the elements' bytes are in another order in the archive.
func (t *Tensor) swapped() bool { return t.BigEndian && t.elementSize() > 1 }

// toLittle puts the bytes of elements into little-endian order, of complex ones
// those of each of the two numbers.
func (t *Tensor) toLittle(b []byte) {
	if !t.swapped() {
		return
	}
	size := int(t.elementSize())
	if dtype.Named(t.DType).Complex() {
		size /= 2
	}
	for number := range slices.Chunk(b, size) {
		slices.Reverse(number)
	}
}

// extent returns the first element of the storage that the tensor needs, and how
// many from there.
func (t *Tensor) extent() (first, count int64, err error) {
	if slices.Contains(t.Shape, 0) {
		return t.StorageOffset, 0, nil
	}
	last := uint64(t.StorageOffset)
	for i, n := range t.Shape {
		hi, lo := bits.Mul64(uint64(n-1), uint64(t.Stride[i]))
		sum, carry := bits.Add64(last, lo, 0)
		if hi != 0 || carry != 0 || sum > maxBytes {
			return 0, 0, errors.New("its strides reach further than any file")
		}
		last = sum
	}
	if last > maxBytes {
		return 0, 0, errors.New("its offset is further than any file")
	}
	return t.StorageOffset, int64(last) - t.StorageOffset + 1, nil
}

// checkSize returns the product of a shape whose elements have size bytes, and
// refuses what no file can have. To torch a shape with a zero is empty, whatever
// its other lengths.
func checkSize(shape []int64, size int64) (elements int64, err error) {
	if slices.Contains(shape, 0) {
		return 0, nil
	}
	n, ok := dtype.Size(shape, size)
	if !ok || n > maxBytes {
		return 0, errTooLarge
	}
	return n / size, nil
}
