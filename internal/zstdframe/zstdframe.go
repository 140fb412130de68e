// Package zstdframe decodes exactly one zstd frame.
//
// A zstd stream may be many frames, some of them skippable, and decoders read
// them as one. What a carton or a layer holds is one frame with nothing before
// or behind it, so that no byte can hide: readers that stop after the first
// frame and readers that go on would see different content.
package zstdframe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// What can be wrong around a frame. The decoder's own errors come as they are.
var (
	// ErrNoFrame: the input does not begin with a frame that holds data.
	ErrNoFrame = errors.New("does not begin with a zstd frame")
	// ErrTrailing: the input goes on behind the frame.
	ErrTrailing = errors.New("more data follows the zstd frame")
	// ErrWindow: the frame asks for a larger window than allowed.
	ErrWindow = zstd.ErrWindowSizeExceeded
)

// NewReader decodes the frame that is all of r, with a window of at most
// maxWindow bytes, in the caller's goroutine. It returns io.EOF only when the
// frame was complete and r ended with it. Close does not close r.
//
// The first read of a frame with a window over [SmallWindow] waits until no other
// such frame is read, that is, until that one was read to its end, or failed, or is
// closed: it must be closed, and whoever has one open must not wait for another. The
// wait ends with ctx.
func NewReader(ctx context.Context, r io.Reader, maxWindow uint64) io.ReadCloser {
	return &reader{f: &frame{ctx: ctx, r: bufio.NewReaderSize(r, 32<<10), maxWindow: maxWindow}}
}

type reader struct {
	d   *zstd.Decoder // nil before the first Read
	f   *frame
	err error // that it ended with
}

func (r *reader) Read(b []byte) (int, error) {
	if r.err == nil && r.d == nil {
		if err := r.begin(); err != nil {
			r.end(err)
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.d.Read(b)
	if r.f.large {
		largeReads.Add(1)
	}
	if err != nil && r.f.err != nil {
		err = r.f.err // the cause; the decoder only saw its input end
	}
	if err != nil {
		r.end(err)
	}
	return n, err
}

// begin reads the header, which says what the decoder needs.
func (r *reader) begin() (err error) {
	if err = r.f.next(); err == nil {
		r.d, err = r.f.decoder()
	}
	if err != nil && r.f.err != nil {
		err = r.f.err
	}
	return err
}

// end lets go of the decoder, whose window it is that costs memory.
func (r *reader) end(err error) {
	if r.err == nil {
		r.err = err
		r.f.done(r.d)
		r.d = nil
	}
}

func (r *reader) Close() error {
	r.end(io.ErrClosedPipe)
	return nil
}

// frame passes through the bytes of one frame, found by its block headers
// (RFC 8878, section 3.1.1), and then wants r to end.
type frame struct {
	ctx      context.Context //nolint:containedctx // io.Reader's method takes none
	r        *bufio.Reader
	left     int64 // bytes to pass through before the next decision
	began    bool
	last     bool // the block being passed through is the last
	ended    bool
	checksum bool
	large    bool // it has filled largeFrame

	maxWindow uint64
	err       error // why r can't be read on, other than its good end
}

func (f *frame) Read(b []byte) (int, error) {
	for f.left == 0 {
		if err := f.next(); err != nil {
			if err != io.EOF { //nolint:errorlint // next returns it bare
				f.err = err
			}
			return 0, err
		}
	}
	n, err := f.r.Read(b[:min(int64(len(b)), f.left)])
	f.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		f.err = err
	}
	return n, err
}

// next decides how many bytes belong to the frame from here: its header, then
// block by block, then the checksum. io.EOF says that the frame was all.
func (f *frame) next() error {
	switch {
	case f.ended:
		if _, err := f.r.ReadByte(); err != io.EOF {
			if err == nil {
				err = ErrTrailing
			}
			return err
		}
		return io.EOF
	case !f.began:
		return f.header()
	case f.last:
		f.ended = true
		if f.checksum {
			f.left = 4
		}
		return nil
	}
	b, err := f.r.Peek(3)
	if err != nil {
		return unexpected(err)
	}
	block := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	f.last = block&1 != 0
	f.left = 3 + int64(block>>3)
	if kind := block >> 1 & 3; kind == 1 { // RLE: one byte, repeated
		f.left = 4
	}
	return nil
}

func (f *frame) header() error {
	b, err := f.r.Peek(zstd.HeaderMaxSize) // may be longer than the whole frame
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var h zstd.Header
	switch err := h.Decode(b); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoFrame, err)
	case h.Skippable:
		return fmt.Errorf("%w, but with a skippable one", ErrNoFrame)
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize // all of it is the window; the decoder sets no limit to that
	}
	if window > f.maxWindow {
		return ErrWindow
	}
	if window > SmallWindow {
		if err := f.waitForMemory(f.ctx); err != nil {
			return err
		}
	}
	f.began, f.checksum, f.left = true, h.HasCheckSum, int64(h.HeaderSize)
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
