package httprange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
)

const (
	// tailBytes is what the first request asks for: a zip's end record, the
	// central directory of some 2,000 members, and the small files that a carton
	// ends with.
	tailBytes = 256 << 10
	// minAhead and maxAhead are the least and most bytes of one request: each that
	// continues where another ended is twice as long.
	minAhead = 64 << 10
	maxAhead = 4 << 20
	// maxCached bounds the memory for what was read, beside the tail.
	maxCached = 16 << 20
)

// ReaderAt is the content of one URL as an io.ReaderAt for many goroutines. It
// holds the tail and the last few MiB that were read. Bytes are not verified.
//
// For long sequential reads OpenRange is faster: one request, nothing held.
type ReaderAt struct {
	g          *Getter
	newRequest NewRequest
	size       int64
	pin        validator

	parent context.Context //nolint:containedctx // io.ReaderAt's methods take none
	ctx    context.Context //nolint:containedctx // parent, until Close
	cancel context.CancelFunc

	mu     sync.Mutex
	tail   block
	blocks []block // the most recently used first
}

// block is bytes of the content from an offset.
type block struct {
	off  int64
	data []byte
}

func (b block) end() int64 { return b.off + int64(len(b.data)) }

// NewReaderAt asks for the last 256 KiB of the content, which also tells its
// size. Content that changes later is ErrChanged; a server that does not honour
// ranges is ErrNoRanges. ctx governs every read until Close.
func NewReaderAt(ctx context.Context, g *Getter, newRequest NewRequest) (*ReaderAt, error) {
	own := *g
	own.Pinned, own.NeedRanges = true, true
	r := &ReaderAt{g: &own, newRequest: newRequest, parent: ctx}
	r.ctx, r.cancel = context.WithCancel(ctx)
	err := r.openTail()
	if noSuffix(err) {
		err = r.openHead()
	}
	if err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

// Size returns the content's size in bytes.
func (r *ReaderAt) Size() int64 { return r.size }

// Close ends reads that are under way.
func (r *ReaderAt) Close() error {
	r.cancel()
	return nil
}

// openTail reads the tail by a range that counts from the end.
func (r *ReaderAt) openTail() error {
	b, err := r.g.openSuffix(r.ctx, r.newRequest, tailBytes)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	off := b.pos
	data, err := io.ReadAll(io.LimitReader(b, tailBytes))
	if err != nil {
		return err
	}
	r.size, r.pin, r.tail = b.size, b.pin, block{off: off, data: data}
	if r.tail.end() != r.size {
		return b.fail(fmt.Errorf("%w: asked for the last bytes, got them up to byte %d of %d", ErrNoRanges, r.tail.end(), r.size))
	}
	return nil
}

// noSuffix reports whether a server may know every range but one that counts
// from the end.
func noSuffix(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code == http.StatusBadRequest || status.Code == http.StatusRequestedRangeNotSatisfiable ||
			status.Code == http.StatusNotImplemented
	}
	return errors.Is(err, ErrNoRanges)
}

// openHead learns the size from the first byte, and then reads the tail.
func (r *ReaderAt) openHead() error {
	b, err := r.g.Open(r.ctx, r.newRequest, 0, 1, -1)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, b)
	r.size, r.pin = b.size, b.pin
	_ = b.Close()
	if err != nil && r.size != 0 { // of nothing there is no first byte
		return err
	}
	r.tail.off = max(0, r.size-tailBytes)
	r.tail.data, err = r.fetch(r.tail.off, r.size-r.tail.off)
	return err
}

// OpenRange opens n bytes from offset off, n < 0 to the end, as one stream.
func (r *ReaderAt) OpenRange(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	return r.g.open(ctx, r.newRequest, extent{off: off, n: n, size: r.size}, r.pin)
}

// ReadAt reads len(p) bytes from offset off, from memory or by a request.
func (r *ReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at offset %d: %w", off, fs.ErrInvalid)
	}
	if r.ctx.Err() != nil {
		return 0, fmt.Errorf("read at offset %d: %w", off, r.closed())
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= r.size {
			return n, io.EOF
		}
		if got := r.cached(p[n:], at); got > 0 {
			n += got
			continue
		}
		data, err := r.fetch(at, r.window(at, int64(len(p)-n)))
		if err != nil {
			return n, err
		}
		n += copy(p[n:], data)
		r.keep(block{off: at, data: data})
	}
	return n, nil
}

// closed says why no more can be read.
func (r *ReaderAt) closed() error {
	if err := r.parent.Err(); err != nil {
		return err
	}
	return fs.ErrClosed
}

// cached copies what is in memory at offset off.
func (r *ReaderAt) cached(p []byte, off int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off >= r.tail.off {
		return copy(p, r.tail.data[off-r.tail.off:])
	}
	for i, b := range r.blocks {
		if off >= b.off && off < b.end() {
			copy(r.blocks[1:i+1], r.blocks[:i])
			r.blocks[0] = b
			return copy(p, b.data[off-b.off:])
		}
	}
	return 0
}

// window returns how many bytes to ask for at off, where want are wanted: more
// each time a reader goes on where a request ended, and never what is in memory.
func (r *ReaderAt) window(off, want int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, end := int64(minAhead), r.tail.off
	for _, b := range r.blocks {
		if b.end() == off {
			n = max(n, 2*int64(len(b.data)))
		}
		if b.off > off {
			end = min(end, b.off)
		}
	}
	return min(max(n, want), maxAhead, end-off)
}

// keep remembers a block, and forgets the least recently used.
func (r *ReaderAt) keep(b block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks = append([]block{b}, r.blocks...)
	total := 0
	for i, b := range r.blocks {
		if total += len(b.data); total > maxCached {
			clear(r.blocks[i:])
			r.blocks = r.blocks[:i]
			return
		}
	}
}

// fetch reads n bytes from off by a request.
func (r *ReaderAt) fetch(off, n int64) ([]byte, error) {
	b, err := r.OpenRange(r.ctx, off, n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }()
	data := make([]byte, n)
	_, err = io.ReadFull(b, data)
	return data, err
}

// openSuffix opens the last n bytes of content whose size is not known.
func (g *Getter) openSuffix(ctx context.Context, newRequest NewRequest, n int64) (*Body, error) {
	b := &Body{g: g, newRequest: newRequest, end: -1, size: -1, suffix: n, needRanges: g.NeedRanges}
	b.ctx, b.cancel = context.WithCancel(ctx)
	if err := b.connect(); err != nil {
		return nil, b.fail(err)
	}
	return b, nil
}
