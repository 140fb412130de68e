package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
)

const (
	// scanSkip is the content, in bytes, from which ScanTar asks for a new range
	// behind it instead of reading through it: about what a connection delivers
	// in the time that a request takes.
	scanSkip = 256 << 10
	// scanWindow is the first range that is asked for, in bytes; each that
	// follows without a gap is twice as long, up to scanWindowMax.
	scanWindow    = 256 << 10
	scanWindowMax = 16 << 20
)

// RangeOpener opens n bytes of a blob from offset off.
type RangeOpener func(ctx context.Context, off, n int64) (io.ReadCloser, error)

// ScanTar lists the entries of an uncompressed tar of size bytes without
// reading the content of large ones: it reads the headers, and small contents
// on the way, through a few ranges. Entries come in the order of the tar. It is
// as strict as [TarReader].
//
// Ranges are not verified against the tar's digest, so neither is the list.
func ScanTar(ctx context.Context, size int64, open RangeOpener) ([]TarHeader, error) {
	r := &scanReader{size: size, window: scanWindow, open: func(off, n int64) (io.ReadCloser, error) {
		return open(ctx, off, n)
	}}
	defer r.close()
	t := NewTarReader(r)
	var list []TarHeader
	for {
		h, err := t.Next()
		if err == io.EOF { //nolint:errorlint // Next's own
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, *h)
	}
}

// scanReader reads a blob through ranges that grow, and can skip.
type scanReader struct {
	open   func(off, n int64) (io.ReadCloser, error)
	size   int64
	off    int64 // where the next byte lies
	window int64 // length of the next range to ask for
	body   io.ReadCloser
	left   int64 // bytes of body still to come
}

func (s *scanReader) Read(b []byte) (int, error) {
	if s.off >= s.size {
		return 0, io.EOF
	}
	if s.left == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.body.Read(b[:min(s.left, int64(len(b)))])
	s.off += int64(n)
	s.left -= int64(n)
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		err = nil
		if s.left > 0 {
			err = fmt.Errorf("read range of a tar: %w", io.ErrUnexpectedEOF)
		}
	}
	return n, err
}

// next asks for the range at off.
func (s *scanReader) next() error {
	s.close()
	n := min(s.window, s.size-s.off)
	body, err := s.open(s.off, n)
	if err != nil {
		return err
	}
	s.body, s.left = body, n
	s.window = min(2*s.window, scanWindowMax)
	return nil
}

// skip moves on by n bytes: by reading what is near, else by a new range.
func (s *scanReader) skip(n int64) error {
	if n-s.left >= scanSkip {
		s.close()
		s.off += n
		s.window = scanWindow
		return nil
	}
	_, err := io.CopyN(io.Discard, readerFunc(s.Read), n)
	if errors.Is(err, io.EOF) {
		return truncated(s.off)
	}
	return err
}

func (s *scanReader) close() {
	if s.body != nil {
		s.body.Close()
	}
	s.body, s.left = nil, 0
}

// readerFunc is a Read method on its own, without the others that io looks for.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
