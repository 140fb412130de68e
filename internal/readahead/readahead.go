// Package readahead makes few long reads of many short ones, for content that
// costs a request a read: the end at once, and elsewhere more each time that
// reading goes on where it ended. What was read is kept, within [MostKept].
package readahead

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
)

const (
	// TailBytes is what is read of the end at once: a zip's end record, the central
	// directory of some 2,000 entries, and the small files that it ends with.
	TailBytes = 256 << 10
	// Least is the least that one read takes, in bytes: each that continues where
	// another ended is twice as long.
	Least = 64 << 10
	// Most is the most that one read takes, in bytes.
	Most = 4 << 20
	// MostKept bounds the memory for what was read, beside the tail.
	MostKept = 16 << 20
)

// Reader is content as an io.ReaderAt for many goroutines.
type Reader struct {
	size  int64
	fetch func(off, n int64) ([]byte, error)

	mu     sync.Mutex
	tail   block   // without data until it was read
	blocks []block // the most recently used first
}

// block is bytes of the content from an offset.
type block struct {
	off  int64
	data []byte
}

func (b block) end() int64 { return b.off + int64(len(b.data)) }

// New makes a Reader of size bytes. fetch reads n bytes from off, or fails; it is
// called by as many goroutines as read.
func New(size int64, fetch func(off, n int64) ([]byte, error)) *Reader {
	return &Reader{size: size, fetch: fetch, tail: block{off: max(0, size-TailBytes)}}
}

// SetTail gives the content's last bytes, where somebody has them already.
func (r *Reader) SetTail(b []byte) { r.tail = block{r.size - int64(len(b)), b} }

// ReadAt implements [io.ReaderAt].
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at offset %d: %w", off, fs.ErrInvalid)
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= r.size {
			return n, io.EOF
		}
		if got := r.kept(p[n:], at); got > 0 {
			n += got
			continue
		}
		from, count := r.window(at, int64(len(p)-n))
		data, err := r.fetch(from, count)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], data[at-from:]) // first: it may be too large to be kept
		r.keep(block{from, data})
	}
	return n, nil
}

// kept copies what is in memory at offset off.
func (r *Reader) kept(p []byte, off int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off >= r.tail.off && r.tail.data != nil {
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

// window says which bytes to read where want bytes at off are wanted: who begins
// near the end gets all of the end, who goes on gets more each time, and nobody
// what is in memory.
func (r *Reader) window(off, want int64) (from, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := r.size
	switch {
	case r.tail.data != nil:
		end = r.tail.off
	case off >= r.tail.off && len(r.blocks) == 0:
		return r.tail.off, r.size - r.tail.off
	}
	n = Least
	for _, b := range r.blocks {
		if b.end() == off {
			n = max(n, 2*int64(len(b.data)))
		}
		if b.off > off {
			end = min(end, b.off)
		}
	}
	return off, min(max(n, want), Most, end-off)
}

// keep remembers a block, and forgets the least recently used. The tail stays.
func (r *Reader) keep(b block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.off == r.tail.off && b.end() == r.size {
		r.tail = b
		return
	}
	r.blocks = append([]block{b}, r.blocks...)
	total := 0
	for i, b := range r.blocks {
		if total += len(b.data); total > MostKept {
			clear(r.blocks[i:])
			r.blocks = r.blocks[:i]
			return
		}
	}
}

// Kept returns how many bytes are in memory.
func (r *Reader) Kept() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.tail.data)
	for _, b := range r.blocks {
		n += len(b.data)
	}
	return n
}
