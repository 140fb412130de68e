package httprange

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/google/go-cmp/cmp"
)

// Under ranges.Only the answer is exactly a range, or a part of its beginning, or
// an error that says that there are none.
func TestOnlyRanges(t *testing.T) {
	data := content(100)
	for _, c := range []struct {
		name  string
		first http.HandlerFunc
		rest  http.HandlerFunc
		ok    bool
	}{
		{"what was asked for", partial(206, "bytes 10-19/100", data[10:20]), nil, true},
		{"its beginning", partial(206, "bytes 10-14/100", data[10:15]), whole(data), true},
		{"the whole", noRanges(data), nil, false},
		{"everything as a part", partial(206, "bytes 0-99/100", data), nil, false},
		{"more than that", partial(206, "bytes 10-99/100", data[10:]), nil, false},
		{"a part around it", partial(206, "bytes 5-19/100", data[5:20]), nil, false},
		{"another part", partial(206, "bytes 20-29/100", data[20:30]), nil, false},
		{"no Content-Range", partial(206, "", data), nil, false},
		{"416", partial(416, "bytes */100", nil), nil, false},
		{"416 without a size", partial(416, "", nil), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			handlers := []http.HandlerFunc{c.first}
			if c.rest != nil {
				handlers = append(handlers, c.rest)
			}
			s := serve(t, handlers...)
			b, err := s.getter().Open(ranges.Only(t.Context()), get(s.URL), 10, 10, 100)
			if !c.ok {
				if diff := cmp.Diff([]string{"bytes=10-19"}, s.requests()); diff != "" || !errors.Is(err, ranges.ErrNone) {
					t.Errorf("got %v after %s, want ranges.ErrNone after one request", err, diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if got, err := io.ReadAll(b); err != nil || string(got) != string(data[10:20]) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// All of it is no range: nothing has to be dropped to give it.
func TestOnlyRangesGivesTheWhole(t *testing.T) {
	data := content(100)
	s := serve(t, noRanges(data))
	b, err := s.getter().Open(ranges.Only(t.Context()), get(s.URL), 0, 100, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := io.ReadAll(b); err != nil || len(got) != 100 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
