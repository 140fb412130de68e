package registry

import (
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
)

// body is the bytes of a stream up to an offset, on their way into one request.
type body struct {
	stream *stream
	end    int64
	told   func(n int, off int64) // of n bytes that go out, up to off; may be nil
	done   atomic.Bool            // everything was delivered

	mu  sync.Mutex
	err error // what Read returns from now on
	own error // what went wrong with the source, not with the network
}

// Read reads from the stream, which is where the body begins.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && b.stream.pos == b.end {
		b.finish()
	}
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.stream.read(p[:min(int64(len(p)), b.end-b.stream.pos)])
	if err != nil {
		b.fail(err)
		return 0, b.err
	}
	if b.stream.pos == b.end {
		b.finish()
	}
	if b.told != nil {
		b.told(n, b.stream.pos)
	}
	return n, nil
}

func (b *body) finish() {
	b.err = io.EOF
	b.done.Store(true)
}

// fail notes what the source did; a source that was told to stop did nothing.
func (b *body) fail(err error) {
	b.err = err
	if b.stream.ctx.Err() == nil {
		b.own = err
	}
}

// Close ends the body, and with it the stream unless every byte was delivered:
// then the next body begins where this one ends.
func (b *body) Close() error {
	if !b.done.Load() {
		b.stream.abort() // a Read that waits for its source comes back
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = fs.ErrClosed
	}
	if b.done.Load() {
		return nil
	}
	return b.stream.close()
}

// outcome reports whether every byte went out, and what went wrong with the
// source.
func (b *body) outcome() (done bool, own error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done.Load(), b.own
}

// bodies are the bodies that one request has had: one more for every time that
// it is sent again with credentials. The last one's stream is the one that the
// upload goes on with.
type bodies struct {
	open func(*stream) *body     // a body of a stream
	seek func() (*stream, error) // another stream, from where the request begins

	mu   sync.Mutex
	last *body
}

// first makes the body of a stream that is in its place.
func (b *bodies) first(s *stream) *body {
	b.last = b.open(s)
	return b.last
}

// again makes another body with the same bytes.
func (b *bodies) again() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.last.Close()
	_ = b.last.stream.close()
	s, err := b.seek()
	if err != nil {
		b.last.mu.Lock()
		b.last.own = err
		b.last.mu.Unlock()
		return nil, err
	}
	b.last = b.open(s)
	return b.last, nil
}

// end closes the last body and says how it came out. The stream is nil unless it
// can be read on.
func (b *bodies) end() (s *stream, complete bool, own error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.last.Close()
	complete, own = b.last.outcome()
	if complete && b.last.stream.ctx.Err() == nil {
		s = b.last.stream
	}
	return s, complete, own
}
