package httprange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/internal/readahead"
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

	cache *readahead.Reader
}

// NewReaderAt asks for the last 256 KiB of the content, which also tells its
// size. Content that changes later is ErrChanged; a server that does not honour
// ranges is ranges.ErrNone. ctx governs every read until Close.
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
	b, err := r.g.openSuffix(r.ctx, r.newRequest, readahead.TailBytes)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	off := b.pos
	data, err := io.ReadAll(io.LimitReader(b, readahead.TailBytes))
	if err != nil {
		return err
	}
	r.size, r.pin = b.size, b.pin
	if end := off + int64(len(data)); end != r.size {
		return b.fail(fmt.Errorf("%w: asked for the last bytes, got them up to byte %d of %d", ranges.ErrNone, end,
			r.size))
	}
	r.cache = readahead.New(r.size, r.fetch)
	r.cache.SetTail(data)
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
	return errors.Is(err, ranges.ErrNone)
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
	tail := min(r.size, readahead.TailBytes)
	data, err := r.fetch(r.size-tail, tail)
	r.cache = readahead.New(r.size, r.fetch)
	r.cache.SetTail(data)
	return err
}

// OpenRange opens n bytes from offset off, n < 0 to the end, as one stream.
func (r *ReaderAt) OpenRange(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	return r.g.open(ctx, r.newRequest, extent{off: off, n: n, size: r.size}, r.pin)
}

// ReadAt reads len(p) bytes from offset off, from memory or by a request.
func (r *ReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, fmt.Errorf("read at offset %d: %w", off, r.closed())
	}
	return r.cache.ReadAt(p, off)
}

// closed says why no more can be read.
func (r *ReaderAt) closed() error {
	if err := r.parent.Err(); err != nil {
		return err
	}
	return fs.ErrClosed
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
