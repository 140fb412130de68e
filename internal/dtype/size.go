package dtype

import (
	"math"
	"math/bits"
	"slices"
)

// Size returns the product of a shape and of unit, which is an element's bytes, or
// 1 for the number of elements; false where it is 2^63 or more, or a length is
// below 0. A zero anywhere makes it 0, but hides no overflow.
func Size(shape []int64, unit int64) (int64, bool) {
	n := uint64(unit)
	for _, d := range shape {
		if d == 0 {
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if n = lo; d < 0 || hi != 0 || n > math.MaxInt64 {
			return 0, false
		}
	}
	if slices.Contains(shape, 0) {
		n = 0
	}
	return int64(n), true
}
