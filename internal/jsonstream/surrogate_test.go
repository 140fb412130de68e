package jsonstream_test

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// TestHalfPairs: half of a surrogate pair is refused, whatever stands beside it.
func TestHalfPairs(t *testing.T) {
	for text, ok := range map[string]bool{
		`"\ud83d\ude00"`:               true,
		`"\ufffd"`:                     true,
		`"\\ud800"`:                    true,
		`"\\\ufffd\ud83d\ude00\ufffd"`: true,
		`"\ud800"`:                     false,
		`"\ufffd\ud800"`:               false,
		`"\\ufffd\ud800"`:              false,
		`"\udc00\ud800"`:               false,
		`"\ud800\ud800\udc00"`:         false,
		`"\ud800x"`:                    false,
		`"\ud800\\dc00"`:               false,
		`"\uD800\n"`:                   false,
	} {
		if _, err := jsonstream.New(strings.NewReader(text)).String(); (err == nil) != ok {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
