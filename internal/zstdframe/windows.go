package zstdframe

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"weak"

	"github.com/klauspost/compress/zstd"
)

// A frame of a hundred bytes can ask for a window of 128 MiB, and a carton can
// hold thousands of them. So one frame with a large window is read at a time, in the
// whole process; others wait until it was read. Frames of ordinary writers never do.

const (
	// SmallWindow is the largest window, in bytes, of a frame that waits for no other:
	// what zstd's levels up to 19 and nearly all writers use.
	SmallWindow = 8 << 20
	// largestWindow is the largest that any caller allows.
	largestWindow = 128 << 20
)

// ErrBusy: the frame that is read in the one place for large windows is not being read.
var ErrBusy = errors.New("another zstd frame with a large window is open, and nobody reads it")

// deadlock is how long a frame waits while the one before it is not read. Whoever
// keeps one open and waits for another would wait for ever.
var deadlock = 2 * time.Minute

var (
	largeFrame = make(chan struct{}, 1) // full while a frame with a large window is read
	largeReads atomic.Int64             // of such frames
	// largeDecoder is the last decoder of such a frame, until its memory is collected:
	// two windows, one of them garbage, would be twice the memory. It is of whoever has
	// filled largeFrame.
	largeDecoder weak.Pointer[zstd.Decoder]
)

// waitForMemory waits until no other frame with a large window is read, until ctx ends.
func (f *frame) waitForMemory(ctx context.Context) error {
	for {
		before := largeReads.Load()
		select {
		case largeFrame <- struct{}{}:
			f.large = true
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(deadlock):
			if largeReads.Load() == before {
				return ErrBusy
			}
		}
	}
}

// decoder returns a decoder that reads f.
func (f *frame) decoder() (*zstd.Decoder, error) {
	if f.large {
		if d := largeDecoder.Value(); d != nil {
			return d, d.Reset(f)
		}
	}
	return zstd.NewReader(f,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(largestWindow)) // f has checked it against its own limit
}

// done lets go of the decoder, nil where there is none yet, and has the next frame
// go on. It may be called again.
func (f *frame) done(d *zstd.Decoder) {
	switch {
	case !f.large:
		if d != nil {
			d.Close()
		}
		return
	case d != nil && d.Reset(nil) == nil:
		largeDecoder = weak.Make(d)
	}
	f.large = false
	<-largeFrame
}

// Short reports whether a frame with a large window would have to wait: time to
// close readers that are kept for later.
func Short() bool { return len(largeFrame) > 0 }
