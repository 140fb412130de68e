package httprange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"sync"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/internal/stall"
)

// Body is the content of a range, put together from as many responses as it
// takes. It is an io.ReadCloser for one reader; Close may be called meanwhile.
type Body struct {
	g          *Getter
	newRequest NewRequest
	ctx        context.Context //nolint:containedctx // a Body is one call's work, as an http.Response's is
	cancel     context.CancelFunc

	mu   sync.Mutex
	err  error // what Read returns from now on
	pos  int64 // offset of the next byte to deliver
	end  int64 // offset after the last; -1: not known yet
	size int64 // the content's; -1: not known yet
	past bool  // the range goes on after the content

	suffix int64 // wanted are this many last bytes, wherever they begin; then 0

	url     *url.URL
	header  http.Header // of the first response that was used
	pin     validator
	current *response // nil: none open
	plain   bool      // ranges don't work here: ask for the whole

	needRanges bool // never ask for the whole in place of a range

	failures int // in a row
	meter    stall.Meter
}

// Header returns the headers of the first response that was used, nil where
// nothing had to be asked for.
func (b *Body) Header() http.Header {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.header
}

// Size returns the whole content's size in bytes as far as it is known, else -1.
func (b *Body) Size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// Close aborts what is under way.
func (b *Body) Close() error {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop()
	if b.err == nil {
		b.err = fs.ErrClosed
	}
	return nil
}

// Read reads the next bytes, over as many requests as that takes.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for b.err == nil {
		if b.end >= 0 && b.pos >= b.end {
			b.err = b.finish()
			break
		}
		if b.current == nil {
			if err := b.connect(); err != nil {
				b.err = b.fail(err)
			}
			continue // where the content ends may be known now
		}
		n, err := b.current.read(p[:b.room(len(p))], &b.meter)
		b.pos += int64(n)
		if err != nil {
			b.broke(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, b.err
}

// room returns how many of n bytes may be read before the end.
func (b *Body) room(n int) int {
	if b.end >= 0 {
		return int(min(int64(n), b.end-b.pos))
	}
	return n
}

// broke notes that the current response ended with err, which is io.EOF at the
// end of its bytes.
func (b *Body) broke(err error) {
	last := b.current.last
	b.drop()
	if err == io.EOF { //nolint:errorlint // a wrapped one is a broken connection
		switch {
		case b.end >= 0 && b.pos >= b.end:
			return
		case last:
			b.learnSize(b.pos) // only this end says where the content ends
			return
		default:
			err = fmt.Errorf("response ended early, at byte %d: %w", b.pos, io.ErrUnexpectedEOF)
		}
	}
	if err := b.again(err); err != nil {
		b.err = b.fail(err)
	}
}

// finish is called when everything wanted has been delivered.
func (b *Body) finish() error {
	defer b.cancel()
	defer b.drop()
	if b.past {
		return io.ErrUnexpectedEOF
	}
	if b.current != nil && b.end == b.size {
		// The end of the response must be read for its connection to be used
		// again. Content that goes on is not the content that was promised.
		var one [1]byte
		if n, _ := b.current.read(one[:], &b.meter); n > 0 {
			return b.fail(fmt.Errorf("%w: content goes on after %d bytes", ErrAnswer, b.size))
		}
	}
	return io.EOF
}

// learnSize notes the content's size and cuts the range to it.
func (b *Body) learnSize(size int64) {
	b.size = size
	switch {
	case b.end < 0 && b.pos <= size:
		b.end = size
	case b.end > size || b.end < 0:
		b.past, b.end = true, max(size, b.pos)
	}
}

// drop closes the current response.
func (b *Body) drop() {
	if b.current != nil {
		b.current.close()
		b.current = nil
	}
}

// connect makes b.current a response that continues at b.pos. It may find
// instead that nothing is left to ask for.
func (b *Body) connect() error {
	for {
		err := b.request()
		if err == nil {
			return nil
		}
		b.drop()
		if err := b.again(err); err != nil {
			return err
		}
	}
}

// again waits for the next attempt after err, or returns the error to give up
// with.
func (b *Body) again(err error) error {
	if cerr := b.ctx.Err(); cerr != nil {
		return cerr
	}
	if b.meter.Progressed() {
		b.failures = 0
	}
	if errors.Is(err, errPlain) {
		// Not a failure of the network: the next request has no Range.
		b.plain = true
		return nil
	}
	cause, header := err, http.Header(nil)
	if failed := (*attempt)(nil); errors.As(err, &failed) {
		if cause, header = failed.err, failed.header; !failed.retry {
			return cause
		}
	} else if !b.g.transient(err) {
		return err
	}
	b.failures++
	d, err := b.g.Policy.Next(b.failures, header, cause)
	if err != nil {
		return err
	}
	b.meter.Add(0, d)
	return b.g.Policy.Pause(b.ctx, b.failures, d, cause)
}

// fail says which URL err is about.
func (b *Body) fail(err error) error {
	b.drop()
	b.cancel()
	if b.url == nil {
		return err
	}
	return &Error{URL: errtext.OneLine(secret.URL(b.url)), Err: err}
}
