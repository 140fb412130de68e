// Package npy reads and writes the headers of .npy files, numpy's format for one
// array: https://github.com/numpy/numpy/blob/v2.3.0/numpy/lib/_format_impl.py.
//
// A file is "\x93NUMPY", a version, the length of what follows, a Python
// dictionary padded with spaces and ended by a newline so that the elements
// begin at a multiple of 64 bytes, and the elements:
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
//
// Types are named here as safetensors names them ("F32"), for who moves arrays
// between the two formats. Types that numpy does not have (BF16, F8_E4M3 and
// such) are none of the format's.
//
// What is written is a function of type and shape alone: version 1.0,
// little-endian, C order, byte for byte as numpy writes it.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/carton-oci/carton-oci/internal/dtype"
)

// The kinds of fault.
var (
	// ErrFormat: the bytes are no .npy file, or a broken one.
	ErrFormat = errors.New("breaks the .npy format")
	// ErrType: the format has no such type, or it is none of those that are read
	// here.
	ErrType = errors.New("is no type of .npy that is read or written here")
)

const (
	magic = "\x93NUMPY"
	// maxHeader is the longest dictionary that is read, in bytes. numpy's own is
	// 10,000 where the file is not trusted.
	maxHeader = 64 << 10
	// MaxDims is the most dimensions that an array may have: numpy 2's limit.
	MaxDims = 64
	// align is what the elements' offset is a multiple of.
	align = 64
)

// Header is what a file says of its array.
type Header struct {
	DType string  // as safetensors names it
	Shape []int64 // a length a dimension; none for a scalar
	// Fortran says that the first index varies fastest.
	Fortran bool
	// BigEndian says that the elements' bytes are in that order.
	BigEndian bool
	// DataStart is the offset in the file at which the elements begin, in bytes.
	DataStart int64
}

// Bytes returns how many bytes the elements have.
func (h *Header) Bytes() int64 {
	n, _ := size(h.DType, h.Shape) // checked when it was read
	return n
}

// HasType reports whether the format has a type of that name.
func HasType(name string) bool {
	t := dtype.Named(name)
	return t != nil && t.Numpy != ""
}

// size returns how many bytes an array has, false where no file can be so large.
func size(name string, shape []int64) (int64, bool) {
	t := dtype.Named(name)
	if t == nil {
		return 0, false
	}
	return dtype.Size(shape, t.Bytes())
}

// WriteHeader writes the header of an array. The elements follow it,
// little-endian and in C order. A type that the format does not have is ErrType.
func WriteHeader(w io.Writer, name string, shape []int64) error {
	if !HasType(name) {
		return fmt.Errorf("%.40q %w", name, ErrType)
	}
	code := dtype.Named(name).Numpy
	if len(shape) > MaxDims {
		return fmt.Errorf("%w: the array has %d dimensions, and numpy allows %d", ErrFormat, len(shape), MaxDims)
	}
	order := "<"
	if strings.HasSuffix(code, "1") {
		order = "|" // of one byte there is no order
	}
	dict := "{'descr': '" + order + code + "', 'fortran_order': False, 'shape': " + tuple(shape) + ", }"
	head := []byte(magic + "\x01\x00")
	// The dictionary, padding, and the newline: never long enough for version 2,
	// because 64 dimensions of 20 digits are 1.4 kB.
	n := len(head) + 2 + len(dict) + 1
	pad := (align - n%align) % align
	head = binary.LittleEndian.AppendUint16(head, uint16(len(dict)+pad+1))
	_, err := w.Write(append(head, dict+strings.Repeat(" ", pad)+"\n"...))
	return err
}

// tuple writes a shape as Python does: (), (3,), (3, 2).
func tuple(shape []int64) string {
	if len(shape) == 1 {
		return "(" + strconv.FormatInt(shape[0], 10) + ",)"
	}
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
