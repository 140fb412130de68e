package sha256hex_test

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/sha256hex"
)

func TestIs(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	for s, want := range map[string]bool{
		good: true, "": false, good[1:]: false, good + "0": false, strings.ToUpper(good): false,
		"g" + good[1:]: false, good[:32] + "/" + good[33:]: false, good[1:] + "\n": false, good[:62] + "\u00e9": false,
	} {
		if got := sha256hex.Is(s); got != want {
			t.Errorf("%q: got %v", s, got)
		}
	}
}
