package inspect

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const (
	// tailBytes is what is read of a member's end at once: the directory of an
	// archive of some thousand files, and the small files that end it.
	tailBytes = 128 << 10
	// leastRead is the least that is read at once, and mostRead the most, in bytes:
	// each read that goes on where another ended is twice as long.
	leastRead = 64 << 10
	mostRead  = 4 << 20
	// mostKept bounds the memory for what was read, in bytes.
	mostKept = 16 << 20
)

// memberAt is a member as an io.ReaderAt that asks for few ranges. Where ranges
// are dear it keeps a stream open and reads on in it as long as offsets grow.
// Bytes are not verified.
type memberAt struct {
	ctx    context.Context //nolint:containedctx // io.ReaderAt's method takes none; lives within one call
	src    carton.Source
	member carton.Member

	mu     sync.Mutex
	blocks []block // the most recently used first
	stream io.ReadCloser
	pos    int64 // of stream
	err    error // the first of the source
}

// block is bytes of the member from an offset.
type block struct {
	off  int64
	data []byte
}

func (b block) end() int64 { return b.off + int64(len(b.data)) }

// close ends what was open. It returns the first error of the source, so that it
// is not taken for one of the content.
func (r *memberAt) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream != nil {
		_ = r.stream.Close() // nothing more is wanted of it
		r.stream = nil
	}
	if r.err != nil {
		return fmt.Errorf("read %s: %w", carton.QuotePath(r.member.Path), r.err)
	}
	return nil
}

// ReadAt implements [io.ReaderAt].
func (r *memberAt) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= r.member.Size {
			return n, io.EOF
		}
		if got := r.kept(p[n:], at); got > 0 {
			n += got
			continue
		}
		b, err := r.fetch(r.window(at, int64(len(p)-n)))
		if err != nil {
			r.err = err
			return n, err
		}
		n += copy(p[n:], b.data[at-b.off:]) // first: it may be too large to be kept
		r.keep(b)
	}
	return n, nil
}

// kept copies what is in memory at offset off.
func (r *memberAt) kept(p []byte, off int64) int {
	for i, b := range r.blocks {
		if off >= b.off && off < b.end() {
			copy(r.blocks[1:i+1], r.blocks[:i])
			r.blocks[0] = b
			return copy(p, b.data[off-b.off:])
		}
	}
	return 0
}

// window says which bytes to read where want bytes at off are wanted: more each
// time a reader goes on where a read ended, never what is in memory, and near
// the end all of the end.
func (r *memberAt) window(off, want int64) (from, n int64) {
	if tail := max(0, r.member.Size-tailBytes); off >= tail && len(r.blocks) == 0 {
		return tail, r.member.Size - tail
	}
	n, end := int64(leastRead), r.member.Size
	for _, b := range r.blocks {
		if b.end() == off {
			n = max(n, min(mostRead, 2*int64(len(b.data))))
		}
		if b.off > off {
			end = min(end, b.off)
		}
	}
	return off, min(max(n, min(want, mostRead)), end-off)
}

// keep remembers a block, and forgets the least recently used.
func (r *memberAt) keep(b block) {
	r.blocks = append([]block{b}, r.blocks...)
	total := 0
	for i, b := range r.blocks {
		if total += len(b.data); total > mostKept {
			clear(r.blocks[i:])
			r.blocks = r.blocks[:i]
			return
		}
	}
}

// fetch reads n bytes from off.
func (r *memberAt) fetch(off, n int64) (block, error) {
	if ranged(r.member) {
		data, err := readRange(r.ctx, r.src, r.member, off, n)
		if err == nil && int64(len(data)) < n {
			err = io.ErrUnexpectedEOF
		}
		return block{off, data}, err
	}
	if r.stream == nil || r.pos > off {
		if err := r.restart(); err != nil {
			return block{}, err
		}
	}
	data := make([]byte, n)
	_, err := io.CopyN(io.Discard, r.stream, off-r.pos)
	if err == nil {
		_, err = io.ReadFull(r.stream, data)
	}
	r.pos = off + n
	return block{off, data}, iox.Unexpected(err)
}

// restart opens the member from its beginning.
func (r *memberAt) restart() (err error) {
	if r.stream != nil {
		_ = r.stream.Close() // nothing more is wanted of it
	}
	r.pos = 0
	r.stream, err = r.src.OpenRange(r.ctx, r.member.Path, 0, -1)
	return err
}
