package zstdframe

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"
)

// A frame of a hundred bytes can ask for a window of 128 MiB, and a carton can
// hold thousands of them. So frames with large windows share one budget in the
// process: who finds it used up waits until another such frame was read. Frames
// of ordinary writers never do.

const (
	// SmallWindow is the largest window, in bytes, that a frame may have without a
	// share of the budget: what zstd's levels up to 19 and nearly all writers use.
	SmallWindow = 8 << 20
	// budgetBytes is what larger windows may take together: one of the largest that
	// any caller allows.
	budgetBytes = 128 << 20
)

// ErrBusy: the frames that have the memory for large windows are not being read.
var ErrBusy = errors.New("other zstd frames with large windows are open, and nobody reads them")

// deadlock is how long a frame waits while none of those that have the memory is
// read. Whoever keeps one open and waits for another would wait for ever.
var deadlock = 2 * time.Minute

var (
	budget   = semaphore.NewWeighted(budgetBytes)
	progress atomic.Int64 // reads of frames with large windows
)

// share is a frame's part of the budget.
type share struct{ bytes int64 }

// take waits for the memory of a window, until ctx ends.
func (s *share) take(ctx context.Context, window uint64) error {
	if window <= SmallWindow {
		return nil
	}
	n := int64(min(window, budgetBytes))
	for {
		before := progress.Load()
		wait, cancel := context.WithTimeout(ctx, deadlock)
		err := budget.Acquire(wait, n)
		cancel()
		switch {
		case err == nil:
			s.bytes = n
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case progress.Load() == before:
			return ErrBusy
		}
	}
}

// read notes that the frame is read.
func (s *share) read() {
	if s.bytes > 0 {
		progress.Add(1)
	}
}

// giveBack may be called again.
func (s *share) giveBack() {
	if s.bytes > 0 {
		budget.Release(s.bytes)
		s.bytes = 0
	}
}

// wide keeps the decoders of frames that had large windows for the next ones:
// two such windows, one of them garbage, would be twice the memory.
var wide idle

// idle are decoders that nobody uses. What they keep is no part of the budget: it
// is freed where a frame comes that needs another.
type idle struct {
	mu       sync.Mutex
	decoders map[*zstd.Decoder]int64 // with the bytes of their windows
	empty    *time.Timer
}

// idleFor is how long a decoder is kept that nobody uses.
const idleFor = 10 * time.Second

// get returns a decoder that has a window of n bytes and little more, nil for
// none. By then nothing is kept that would not fit into the budget beside it.
func (i *idle) get(n int64) *zstd.Decoder {
	i.mu.Lock()
	defer i.mu.Unlock()
	for d, has := range i.decoders {
		if has == n {
			delete(i.decoders, d)
			return d
		}
	}
	if i.drop() {
		// Not left to the collector: it may begin when the next window is there.
		runtime.GC()
	}
	return nil
}

// put keeps a decoder whose window has n bytes.
func (i *idle) put(d *zstd.Decoder, n int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.decoders == nil {
		i.decoders = map[*zstd.Decoder]int64{}
	}
	i.decoders[d] = n
	if i.empty == nil {
		i.empty = time.AfterFunc(idleFor, func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.drop()
		})
	}
	i.empty.Reset(idleFor)
}

// drop lets go of all decoders and reports whether there were any. The caller
// holds the lock.
func (i *idle) drop() bool {
	some := len(i.decoders) > 0
	for d := range i.decoders {
		d.Close()
	}
	clear(i.decoders)
	return some
}

// decoderFor returns a decoder that reads f.
func decoderFor(f *frame) (*zstd.Decoder, error) {
	if f.share.bytes > 0 {
		if d := wide.get(f.share.bytes); d != nil {
			return d, d.Reset(f)
		}
	}
	return zstd.NewReader(f,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(budgetBytes)) // f has checked it against its own limit
}

// giveBack lets go of a frame's decoder.
func giveBack(d *zstd.Decoder, f *frame) {
	if f.share.bytes > 0 && d.Reset(nil) == nil {
		wide.put(d, f.share.bytes)
		return
	}
	d.Close()
}

// Short reports whether a frame with a large window may have to wait: time to
// close readers that are kept for later.
func Short() bool {
	if !budget.TryAcquire(budgetBytes) {
		return true
	}
	budget.Release(budgetBytes)
	return false
}
