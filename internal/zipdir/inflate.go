package zipdir

import (
	"bufio"
	"compress/flate"
	"errors"
	"io"
	"sync"
)

// inflater is the state of a reader of deflate, 40 kB that are kept for the next.
type inflater struct {
	flate io.ReadCloser
	buf   *bufio.Reader
}

var inflaters = sync.Pool{New: func() any {
	buf := bufio.NewReaderSize(nil, 32<<10)
	return &inflater{flate: flate.NewReader(buf), buf: buf}
}}

// Inflate unpacks the deflate stream that r is. Bytes of r behind the stream, which
// another reader could take for content, are an error.
func Inflate(r io.Reader) io.ReadCloser {
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
