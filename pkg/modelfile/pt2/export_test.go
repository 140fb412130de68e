package pt2

import (
	"io"
	"testing"
)

// ReadInBlocks is Read of a tensor that is not contiguous, with blocks of
// another size.
func (t *Tensor) ReadInBlocks(r io.ReaderAt, block int64) io.Reader {
	return newGatherer(t, r, block)
}

// SetMaxKept sets another MaxKeptBytes for a test.
func SetMaxKept(t *testing.T, n int64) {
	t.Cleanup(func() { maxKept = MaxKeptBytes })
	maxKept = n
}
