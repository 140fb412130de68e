package carton

import (
	"io"

	"github.com/carton-oci/carton-oci/internal/iox"
)

// A range of a member's content is what OpenRange gives: n bytes from off, to
// the end where n < 0. Where it reaches past the content it ends early with
// io.ErrUnexpectedEOF. The functions here are the only arithmetic on ranges.

// sizedReaderAt is a content that can be read anywhere.
type sizedReaderAt interface {
	io.ReaderAt
	Size() int64
}

// NewRange is what [Source] OpenRange returns for a member of size bytes: it
// opens what there is of the range through open, for which 0 < n, and ends with
// io.ErrUnexpectedEOF where the range reaches past the content.
func NewRange(
	path string, size, off, n int64, open func(off, n int64) (io.ReadCloser, error),
) (io.ReadCloser, error) {
	count, short, err := clip(path, size, off, n)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return ranged(nil, io.NopCloser(nil), 0, short), nil
	}
	r, err := open(off, count)
	if err != nil {
		return nil, err
	}
	return iox.ReadCloser{Reader: &iox.Exactly{R: r, N: count, Short: short, Judged: true}, Closer: r}, nil
}

// rangeOf gives a range of a content. c, which may be nil, is closed with it.
func rangeOf(content sizedReaderAt, c io.Closer, path string, off, n int64) (io.ReadCloser, error) {
	if c == nil {
		c = io.NopCloser(nil)
	}
	count, short, err := clip(path, content.Size(), off, n)
	if err != nil {
		c.Close()
		return nil, err
	}
	return ranged(io.NewSectionReader(content, off, count), c, count, short), nil
}

// skipTo gives a range of a content of size bytes that r reads from its start,
// and that is closed with it.
func skipTo(r io.ReadCloser, path string, size, off, n int64) (io.ReadCloser, error) {
	count, short, err := clip(path, size, off, n)
	if err != nil {
		r.Close()
		return nil, err
	}
	if off > 0 && count > 0 {
		if _, err := io.CopyN(io.Discard, r, off); err != nil {
			r.Close()
			return nil, of(path, iox.Unexpected(err))
		}
	}
	return ranged(r, r, count, short), nil
}

// clip says how many bytes of a content of size bytes a range holds. short is
// set where the range reaches past the content.
func clip(path string, size, off, n int64) (count int64, short bool, err error) {
	switch {
	case off < 0:
		return 0, false, errorf(ErrFormat, path, "a range can't begin at %d", off)
	case off > size:
		return 0, true, nil
	case n < 0:
		return size - off, false, nil
	case n > size-off:
		return size - off, true, nil
	}
	return n, false, nil
}

// ranged gives count bytes of r, then io.ErrUnexpectedEOF where the range was
// short, else io.EOF.
func ranged(r io.Reader, c io.Closer, count int64, short bool) io.ReadCloser {
	return iox.ReadCloser{Reader: &iox.Exactly{R: r, N: count, Short: short}, Closer: c}
}
