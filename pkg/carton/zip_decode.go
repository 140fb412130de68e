package carton

import (
	"bufio"
	"compress/flate"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/carton-oci/carton-oci/internal/zstdframe"
)

// decodeZip gives the content of packed, the bytes of a member as they lie in
// the zip. All of packed must belong to the one deflate stream or zstd frame.
func decodeZip(ctx context.Context, path string, method uint16, packed io.Reader) io.ReadCloser {
	if method == zipStored {
		return io.NopCloser(packed)
	}
	source := &lastError{r: packed}
	if method == zipZstd {
		return &decoder{r: zstdframe.NewReader(ctx, source, MaxZstdWindow), source: source, path: path}
	}
	return &decoder{r: newInflater(source), source: source, path: path}
}

// decoder tells corrupt data from data that could not be read.
type decoder struct {
	r      io.ReadCloser
	source *lastError
	path   string
}

func (d *decoder) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = d.explain(err)
	}
	return n, err
}

func (d *decoder) Close() error { return d.r.Close() }

func (d *decoder) explain(err error) error {
	switch {
	case d.source.err != nil:
		return d.source.err
	case errors.Is(err, zstdframe.ErrWindow):
		return &Error{Path: d.path, Kind: ErrLimit, Msg: "zstd frame asks for a window over 128 MiB", Err: err}
	}
	return &Error{Path: d.path, Kind: ErrChecksum, Msg: "can't be decompressed", Err: err}
}

// lastError remembers why r could not be read, other than its end.
type lastError struct {
	r   io.Reader
	err error
}

func (l *lastError) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if err != nil && err != io.EOF { // a wrapped io.EOF is an error
		l.err = err
	}
	return n, err
}

// inflater reads a deflate stream that ends where its source does. Its state
// is 40 kB, kept for the next member.
type inflater struct {
	flate io.ReadCloser
	buf   *bufio.Reader
}

var inflaters = sync.Pool{New: func() any {
	buf := bufio.NewReaderSize(nil, 32<<10)
	return &inflater{flate: flate.NewReader(buf), buf: buf}
}}

func newInflater(r io.Reader) io.ReadCloser {
	i := inflaters.Get().(*inflater) //nolint:forcetypeassert // the pool holds nothing else
	i.buf.Reset(r)
	// The reader of compress/flate has been a Resetter since Go 1.4; Reset of one
	// without a dictionary can't fail.
	_ = i.flate.(flate.Resetter).Reset(i.buf, nil) //nolint:forcetypeassert // see above
	return &inflating{i: i}
}

type inflating struct{ i *inflater }

var errAfterDeflate = errors.New("more data follows the deflate stream")

func (r *inflating) Read(b []byte) (int, error) {
	if r.i == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := r.i.flate.Read(b)
	if err == io.EOF {
		if _, after := r.i.buf.ReadByte(); after == nil {
			err = errAfterDeflate
		}
	}
	return n, err
}

func (r *inflating) Close() error {
	if r.i != nil {
		inflaters.Put(r.i)
		r.i = nil
	}
	return nil
}
