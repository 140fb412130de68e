package pack_test

import (
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/carton/sourcetest"
)

// What is packed is a carton.Source like any other.
func TestACartonOfFilesKeepsThePromisesOfASource(t *testing.T) {
	dir := tree(t, map[string]string{"a": "0123456789", "b/c": "", "l": "-> a"})
	sourcetest.TestSource(t, func() carton.Source { return open(t, noop, dir) }, sourcetest.Options{
		Broken: func() (carton.Source, string) {
			src := open(t, noop, dir)
			write(t, dir, map[string]string{"a": "9876543210"})
			return src, "model/a"
		},
	})
}
