package convert

import (
	"context"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/zstdframe"
)

const (
	// maxParked is how many streams wait for the member that comes next.
	maxParked = 8
	// skipBytes is the gap, in bytes, from which a new request into an uncompressed
	// tar costs less than reading on.
	skipBytes = 256 << 10
	// shortParking is how long a stream waits while memory for the windows of zstd
	// frames is short: whoever reads its members comes back at once or not at all.
	shortParking = time.Second
)

// streams read tar layers forwards. A stream whose reader was closed waits at
// its place for the next member of the same layer, so that members opened one
// after another cost one request, and each byte is read once.
type streams struct {
	// open opens a layer's uncompressed tar at an offset, or at 0 where the layer
	// is compressed, and says which. The stream outlives ctx's end.
	open func(ctx context.Context, layer int, off int64) (r io.ReadCloser, at int64, err error)
	// seekable reports whether open opens a layer at any offset.
	seekable func(layer int) bool

	mu     sync.Mutex
	parked []*stream // oldest first
	closed bool
}

// stream is a tar that is being read.
type stream struct {
	layer  int
	pos    int64 // of the next byte, in the uncompressed tar
	r      io.ReadCloser
	cancel context.CancelFunc
	failed bool
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.pos += int64(n)
	s.failed = s.failed || err != nil
	return n, err
}

func (s *stream) close() {
	s.cancel()
	_ = s.r.Close() // nothing more is wanted of it
}

// member opens a member's content, at p.off, for a reader that wants all of it.
// What lies between it and the member before is compared with what the tar must
// hold, where that is known.
func (s *streams) member(ctx context.Context, p *place) (io.ReadCloser, error) {
	from := p.off
	if p.tar != nil {
		from = p.gap
	}
	r, err := s.reader(ctx, p, from)
	if err != nil {
		return nil, err
	}
	if p.tar != nil {
		if err := p.tar.check(ctx, r.stream, p.gap, p.off); err != nil {
			r.stream.failed = true
			_ = r.Close()
			return nil, err
		}
	}
	r.left = p.size
	return r, nil
}

// at opens a member's content at an offset.
func (s *streams) at(ctx context.Context, p *place, off int64) (io.ReadCloser, error) {
	r, err := s.reader(ctx, p, p.off+off)
	if err != nil {
		return nil, err
	}
	r.left, r.partial = p.size-off, true
	return r, nil
}

// reader gives a stream of the member's layer that stands at an offset.
func (s *streams) reader(ctx context.Context, p *place, off int64) (*memberReader, error) {
	st, err := s.take(ctx, p.layer, off)
	if err != nil {
		return nil, err
	}
	r := &memberReader{streams: s, stream: st, place: p, ctx: ctx}
	r.stop = context.AfterFunc(ctx, st.cancel)
	if _, err := io.CopyN(io.Discard, st, off-st.pos); err != nil {
		st.failed = true
		_ = r.Close()
		return nil, iox.Unexpected(err)
	}
	return r, nil
}

// take returns the parked stream that is nearest before off, or opens one.
func (s *streams) take(ctx context.Context, layer int, off int64) (*stream, error) {
	s.mu.Lock()
	best := -1
	for i, st := range s.parked {
		if st.layer == layer && st.pos <= off && (best < 0 || st.pos > s.parked[best].pos) {
			best = i
		}
	}
	var st *stream
	if best >= 0 {
		st = s.parked[best]
		s.parked = append(s.parked[:best], s.parked[best+1:]...)
	}
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, fs.ErrClosed
	case st != nil && (off-st.pos <= skipBytes || !s.seekable(layer)):
		return st, nil
	case st != nil:
		st.close()
	}
	if zstdframe.Short() {
		s.drop(nil) // one of them may have the memory that this one waits for
	}
	// The stream may serve calls that come after this one's context has ended.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	r, at, err := s.open(life, layer, off)
	if !stop() && err == nil {
		err = ctx.Err()
		_ = r.Close()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{layer: layer, pos: at, r: r, cancel: cancel}, nil
}

// park keeps a stream for who comes next.
func (s *streams) park(st *stream) {
	s.mu.Lock()
	drop := st
	if !s.closed {
		s.parked = append(s.parked, st)
		drop = nil
		if len(s.parked) > maxParked {
			drop, s.parked = s.parked[0], s.parked[1:]
		}
	}
	s.mu.Unlock()
	switch {
	case drop != nil:
		drop.close()
	case zstdframe.Short():
		time.AfterFunc(shortParking, func() { s.drop(st) })
	}
}

// drop closes a stream that is still parked, or all of them for nil.
func (s *streams) drop(st *stream) {
	var dropped []*stream
	s.mu.Lock()
	s.parked = slices.DeleteFunc(s.parked, func(p *stream) bool {
		if st != nil && p != st {
			return false
		}
		dropped = append(dropped, p)
		return true
	})
	s.mu.Unlock()
	for _, p := range dropped {
		p.close()
	}
}

func (s *streams) close() {
	s.mu.Lock()
	parked := s.parked
	s.parked, s.closed = nil, true
	s.mu.Unlock()
	for _, st := range parked {
		st.close()
	}
}

// memberReader reads one member of a stream.
type memberReader struct {
	streams *streams
	stream  *stream
	place   *place
	ctx     context.Context //nolint:containedctx // a reader belongs to the call that opened it
	stop    func() bool
	left    int64
	partial bool // the range of a member
	ended   bool
}

func (r *memberReader) Read(p []byte) (int, error) {
	if r.stream == nil {
		return 0, fs.ErrClosed
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.left == 0 {
		return 0, r.end()
	}
	n, err := r.stream.Read(p[:min(r.left, int64(len(p)))])
	r.left -= int64(n)
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		err = nil
		if r.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// end checks what follows the layer's last member.
func (r *memberReader) end() error {
	if p := r.place; !r.ended && !r.partial && p.tar != nil && p.last {
		if err := p.tar.checkEnd(r.ctx, r.stream, r.stream.pos); err != nil {
			r.stream.failed = true
			return err
		}
	}
	r.ended = true
	return io.EOF
}

// Close leaves the stream to the next member, unless it failed or its context
// has ended.
func (r *memberReader) Close() error {
	st := r.stream
	if st == nil {
		return nil
	}
	r.stream = nil
	if !r.stop() || st.failed {
		st.close()
	} else {
		r.streams.park(st)
	}
	return nil
}
