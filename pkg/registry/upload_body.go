package registry

import (
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
)

// body is the bytes of a reader up to an offset, on their way into one request.
type body struct {
	reader *blobReader
	end    int64
	report func(n int, off int64) // of n bytes that go out, up to off; may be nil
	done   atomic.Bool            // everything was delivered

	mu        sync.Mutex
	err       error // what Read returns from now on
	sourceErr error // what went wrong with the source, not with the network
}

// Read reads from the reader, which is where the body begins.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && b.reader.pos == b.end {
		b.finish()
	}
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.reader.read(p[:min(int64(len(p)), b.end-b.reader.pos)])
	if err != nil {
		b.fail(err)
		return 0, b.err
	}
	if b.reader.pos == b.end {
		b.finish()
	}
	if b.report != nil {
		b.report(n, b.reader.pos)
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
	if b.reader.ctx.Err() == nil {
		b.sourceErr = err
	}
}

// Close ends the body, and with it the reader unless every byte was delivered:
// then the next body begins where this one ends.
func (b *body) Close() error {
	if !b.done.Load() {
		b.reader.abort() // a Read that waits for its source comes back
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = fs.ErrClosed
	}
	if b.done.Load() {
		return nil
	}
	return b.reader.close()
}

// outcome reports whether every byte went out, and what went wrong with the
// source.
func (b *body) outcome() (done bool, sourceErr error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done.Load(), b.sourceErr
}

// bodies are the bodies that one request has had: one more for every time that
// it is sent again with credentials. The upload goes on with the last one's reader.
type bodies struct {
	open func() (*blobReader, error) // a reader from where the request begins

	mu   sync.Mutex
	last *body
}

// again makes another body with the same bytes: it is the request's GetBody.
func (b *bodies) again() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.last.Close()
	_ = b.last.reader.close()
	r, err := b.open()
	if err != nil {
		b.last.mu.Lock()
		defer b.last.mu.Unlock()
		b.last.sourceErr = err
		return nil, err
	}
	b.last = &body{reader: r, end: b.last.end, report: b.last.report}
	return b.last, nil
}

// end closes the last body and says how it came out. The reader is nil unless it
// can be read on.
func (b *bodies) end() (r *blobReader, complete bool, sourceErr error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.last.Close()
	complete, sourceErr = b.last.outcome()
	if complete && b.last.reader.ctx.Err() == nil {
		r = b.last.reader
	}
	return r, complete, sourceErr
}
