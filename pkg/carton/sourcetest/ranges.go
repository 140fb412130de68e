package sourcetest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// ranges are parts of the content, and say where they reach past it.
func ranges(t *testing.T, src carton.Source) {
	for _, m := range list(t, src) {
		content, err := read(src.Open(t.Context(), m.Path))
		if err != nil {
			t.Errorf("%s: %v", m.Path, err)
			continue
		}
		testRanges(t, src, m.Path, content)
	}
}

func testRanges(t *testing.T, src carton.Source, path string, content []byte) {
	t.Helper()
	size := int64(len(content))
	for _, r := range []struct{ off, n int64 }{
		{0, -1},
		{0, 0},
		{0, 1},
		{0, size},
		{0, size + 1},
		{1, -1},
		{1, 2},
		{size / 2, -1},
		{size / 2, 3},
		{size / 2, size - size/2},
		{size - 1, 1},
		{size, -1},
		{size, 0},
		{size, 1},
		{size + 1, -1},
		{size + 1, 0},
		{size + 1, 5},
		{2*size + 7, 1},
	} {
		if r.off < 0 {
			continue
		}
		end := size
		if r.n >= 0 {
			end = r.off + r.n
		}
		want := content[min(r.off, size):max(min(end, size), min(r.off, size))]
		var wantErr error
		if r.off > size || end > size {
			wantErr = io.ErrUnexpectedEOF
		}
		got, err := read(src.OpenRange(t.Context(), path, r.off, r.n))
		if !bytes.Equal(got, want) || !errors.Is(err, wantErr) || wantErr == nil && err != nil {
			t.Errorf("%s: %d of its %d bytes from %d: got %d bytes, %v, want %d, %v", path, r.n, size, r.off, len(got), err, len(want), wantErr)
		}
	}
	for _, n := range []int64{-1, 0, 1} {
		if _, err := read(src.OpenRange(t.Context(), path, -1, n)); err == nil {
			t.Errorf("%s: %d bytes from -1: got no error", path, n)
		}
	}
}

// manyAtOnce: implementations are safe for concurrent use.
func manyAtOnce(t *testing.T, src carton.Source) {
	all := list(t, src)
	all = all[:min(len(all), 16)]
	var users sync.WaitGroup
	for i, m := range slices.Concat(all, all) {
		users.Go(func() {
			if i%2 == 0 {
				if _, err := src.Members(t.Context()); err != nil {
					t.Errorf("Members: %v", err)
				}
			}
			want(t, src, m)
			whole, err := read(src.OpenRange(t.Context(), m.Path, 0, -1))
			if err != nil || m.Size >= 0 && int64(len(whole)) != m.Size {
				t.Errorf("%s: got a range of %d bytes, %v, want %d", m.Path, len(whole), err, m.Size)
			}
			_, _ = src.CRC(m.Path)
			_ = src.Findings()
			if err := src.CheckFraming(t.Context(), m.Path); err != nil {
				t.Errorf("CheckFraming %s: %v", m.Path, err)
			}
		})
	}
	users.Wait()
}
