package inspect

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// memberAt is a member as an io.ReaderAt that asks for few ranges. Where ranges
// are expensive it keeps a stream open and reads on in it as long as offsets grow.
// Bytes are not verified.
type memberAt struct {
	ctx    context.Context //nolint:containedctx // io.ReaderAt's method takes none; lives within one call
	src    carton.Source
	member carton.Member

	mu     sync.Mutex
	cache  *readahead.Reader
	stream io.ReadCloser
	pos    int64 // of stream
	err    error // the first of the source
}

// Close ends what was open. It returns the first error of the source, so that it
// is not taken for one of the content.
func (r *memberAt) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream != nil {
		_ = r.stream.Close() // nothing more is wanted of it
		r.stream = nil
	}
	if r.err != nil {
		return fmt.Errorf("read %s: %w", errtext.Quote(r.member.Path), r.err)
	}
	return nil
}

// ReadAt implements [io.ReaderAt].
func (r *memberAt) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	if r.cache == nil {
		r.cache = readahead.New(r.member.Size, func(off, n int64) (data []byte, _ error) {
			data, r.err = r.fetch(off, n)
			return data, r.err
		})
	}
	return r.cache.ReadAt(p, off)
}

// fetch reads n bytes from off.
func (r *memberAt) fetch(off, n int64) ([]byte, error) {
	if ranged(r.member) {
		data, err := readRange(r.ctx, r.src, r.member, off, n)
		if err == nil && int64(len(data)) < n {
			err = io.ErrUnexpectedEOF
		}
		return data, err
	}
	if r.stream == nil || r.pos > off {
		if err := r.restart(); err != nil {
			return nil, err
		}
	}
	data := make([]byte, n)
	_, err := io.CopyN(io.Discard, r.stream, off-r.pos)
	if err == nil {
		_, err = io.ReadFull(r.stream, data)
	}
	r.pos = off + n
	return data, iox.Unexpected(err)
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
