package dtype_test

import (
	"testing"

	"github.com/carton-oci/carton-oci/internal/dtype"
)

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		shape []int64
		unit  int64
		want  int64
		ok    bool
	}{
		{nil, 4, 4, true},
		{[]int64{2, 3}, 4, 24, true},
		{[]int64{2, 0}, 4, 0, true},
		{[]int64{1 << 62}, 1, 1 << 62, true},
		{[]int64{1 << 62}, 2, 0, false},
		{[]int64{1 << 31, 1 << 32}, 1, 0, false},
		{[]int64{1 << 32, 1 << 32}, 1, 0, false},
		{[]int64{0, 1 << 32, 1 << 32}, 1, 0, false},
		{[]int64{1 << 32, 1 << 32, 0}, 1, 0, false},
		{[]int64{-1}, 1, 0, false},
		{[]int64{0, -1}, 1, 0, false},
	} {
		if got, ok := dtype.Size(tt.shape, tt.unit); got != tt.want || ok != tt.ok {
			t.Errorf("%v of %d bytes: got %d, %v; want %d, %v", tt.shape, tt.unit, got, ok, tt.want, tt.ok)
		}
	}
}
