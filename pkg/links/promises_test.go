package links_test

import (
	"io"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/carton/sourcetest"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// A carton whose links are followed is a carton.Source like any other, whether hosts
// say sizes or not.
func TestAResolvedSourceKeepsItsPromises(t *testing.T) {
	data := numbers(70_000)
	for name, sizes := range map[string]map[string]int64{"sizes": {"https://a/1": int64(len(data))}, "no sizes": nil} {
		t.Run(name, func(t *testing.T) {
			open := func() carton.Source {
				return links.Resolve(thin(data, "https://a/1"), &places{serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": host1(data)}, sizes: sizes})
			}
			broken := func() (carton.Source, string) {
				return links.Resolve(thin(data, "https://a/1"), &places{serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": host1(data[1:])}}), "model/a"
			}
			sourcetest.TestSource(t, open, sourcetest.Options{Broken: broken})
		})
	}
}

// host1 serves what there is of a range.
func host1(b []byte) func(off, n int64) (io.Reader, error) {
	return func(off, n int64) (io.Reader, error) {
		if off > int64(len(b)) {
			return nil, io.ErrUnexpectedEOF
		}
		return gives(b)(off, n)
	}
}
