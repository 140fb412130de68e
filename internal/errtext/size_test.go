package errtext_test

import (
	"testing"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "?", 0: "0 B", 999: "999 B", 1000: "1.0 kB", 1023: "1.0 kB", 1949: "1.9 kB", 9949: "9.9 kB", 9951: "10 kB",
		999_499: "999 kB", 999_500: "1.0 MB", 1_390_672: "1.4 MB", 2 << 30: "2.1 GB", 20 << 30: "21 GB", 1<<63 - 1: "9.2 EB",
	} {
		if got := errtext.Size(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
