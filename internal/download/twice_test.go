package download_test

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/download"
)

// A block that the disk gives back otherwise is fetched by another worker while the
// rest of its range is under way. When that range breaks, the block is the other
// worker's: it is not given back a second time, nor counted twice.
func TestABlockThatIsLostWhileItsRangeIsUnderWay(t *testing.T) {
	p := newPlace(16 * mib) // ranges of two blocks
	arrived, again, taken := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var thirds, seconds int
	var mu sync.Mutex
	p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
		mu.Lock()
		defer mu.Unlock()
		switch a.off {
		case 0: // does not end before block 2 has arrived, so that that waits for its hash
			return io.MultiReader(&opens{arrived}, r)
		case 2 * mib:
			if seconds++; seconds == 1 { // breaks once block 2 is fetched again
				return io.MultiReader(io.LimitReader(r, mib), &shuts{arrived}, &opens{again}, &errReader{temporaryError{}})
			}
			if seconds == 2 { // ends once the first has been given back
				close(again)
				return io.MultiReader(&opens{taken}, r)
			}
			close(taken)
		case 3 * mib:
			if thirds++; thirds == 1 {
				close(taken)
			}
		}
		return r
	}
	job := p.job()
	job.Create = func(int) (download.File, error) { return &forgetsOnce{memory: p.files[0]}, nil }
	res, err := download.Run(t.Context(), job, download.Options{Concurrency: 2})
	if err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	if res.There != 16*mib {
		t.Errorf("%d bytes were counted, want %d", res.There, 16*mib)
	}
}

// opens ends when a channel is closed, shuts closes it.
type (
	opens struct{ c chan struct{} }
	shuts struct{ c chan struct{} }
)

func (w *opens) Read([]byte) (int, error) { <-w.c; return 0, io.EOF }
func (c *shuts) Read([]byte) (int, error) { close(c.c); return 0, io.EOF }

// forgetsOnce gives block 2 back otherwise, once.
type forgetsOnce struct {
	*memory
	once sync.Once
}

func (f *forgetsOnce) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.memory.ReadAt(b, off)
	if off == 2*mib {
		f.once.Do(func() { b[0] ^= 1 })
	}
	return n, err
}
