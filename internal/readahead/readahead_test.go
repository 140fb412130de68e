package readahead_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/readahead"
)

// fetched notes what is asked for of content.
type fetched struct {
	mu    sync.Mutex
	b     []byte
	spans [][2]int64 // offset and count
	err   error
}

func (f *fetched) fetch(off, n int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spans = append(f.spans, [2]int64{off, n})
	return f.b[off : off+n], f.err
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return b
}

// TestWhatIsFetched: a read at the end fetches all of the end, others more each
// time that they go on, and nothing twice.
func TestWhatIsFetched(t *testing.T) {
	const (
		size  = 8 << 20
		least = readahead.Least
		tail  = size - readahead.TailBytes
	)
	f := &fetched{b: content(size)}
	r := readahead.New(size, f.fetch)
	for _, c := range []struct {
		off, n int64
		want   [][2]int64
	}{
		{size - 10, 10, [][2]int64{{tail, readahead.TailBytes}}},
		{tail, 1000, nil},
		{0, 10, [][2]int64{{0, least}}},
		{least - 5, 10, [][2]int64{{least, 2 * least}}},
		{4 << 20, 3 << 20, [][2]int64{{4 << 20, 3 << 20}}},
		{3*least + 1, 10, [][2]int64{{3*least + 1, least}}},
		{2 << 20, 5 << 20, [][2]int64{{2 << 20, 2 << 20}}}, // up to what is there
		{tail - 10, 20, [][2]int64{{tail - 10, 10}}},
		{size - 5, 10, nil},
	} {
		f.spans = nil
		p := make([]byte, c.n)
		n, err := r.ReadAt(p, c.off)
		want := f.b[c.off:min(size, c.off+c.n)]
		if !bytes.Equal(p[:n], want) || errors.Is(err, io.EOF) != (n < len(p)) || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes at %d: got %d, %v", c.n, c.off, n, err)
		}
		if !slices.Equal(f.spans, c.want) {
			t.Errorf("%d bytes at %d: fetched %v, want %v", c.n, c.off, f.spans, c.want)
		}
	}
	if _, err := r.ReadAt(nil, -1); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a negative offset: got %v", err)
	}
	f.err = io.ErrClosedPipe
	if n, err := r.ReadAt(make([]byte, 10), 2<<20-5); n != 0 || !errors.Is(err, f.err) {
		t.Errorf("got %d bytes, %v, want what fetch said", n, err)
	}
}

// TestMemoryIsBounded: whatever is read, by however many.
func TestMemoryIsBounded(t *testing.T) {
	f := &fetched{b: content(18 << 20)}
	r := readahead.New(int64(len(f.b)), f.fetch)
	r.SetTail(f.b[len(f.b)-100:])
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var got bytes.Buffer
			if _, err := io.Copy(&got, io.NewSectionReader(r, 0, int64(len(f.b)))); err != nil || !bytes.Equal(got.Bytes(), f.b) {
				t.Errorf("got %d bytes, %v", got.Len(), err)
			}
		})
	}
	wg.Wait()
	if n := r.Kept(); n > readahead.MostKept+readahead.TailBytes {
		t.Errorf("keeps %d bytes", n)
	}
}
