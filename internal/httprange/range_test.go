package httprange

import (
	"bytes"
	"net/http"
	"testing"
	"time"
)

func TestRanges(t *testing.T) {
	data := content(100_000)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
	g := &Getter{Do: s.Client().Do, Policy: fast()}
	for _, c := range []struct{ off, n, size, from, to int64 }{
		{0, -1, -1, 0, 100_000},
		{0, -1, 100_000, 0, 100_000},
		{0, 10, -1, 0, 10},
		{99_990, -1, -1, 99_990, 100_000},
		{5, 10, 100_000, 5, 15},
		{100_000, -1, -1, 0, 0},
		{100_000, 0, -1, 0, 0},
	} {
		got, err := read(t, g, s.URL, c.off, c.n, c.size)
		if err != nil || !bytes.Equal(got, data[c.from:c.to]) {
			t.Errorf("off %d n %d size %d: got %d bytes, %v", c.off, c.n, c.size, len(got), err)
		}
	}
}
