// Package iox has the small readers that several packages need. An end is io.EOF
// itself: a wrapped one is a fault of what is read.
package iox

import (
	"errors"
	"io"
)

// ReadCloser reads from one and closes the other.
type ReadCloser struct {
	io.Reader
	io.Closer
}

// Over closes what it is made from, too.
type Over struct {
	io.ReadCloser
	Under io.Closer
}

// Close closes both.
func (o Over) Close() error { return errors.Join(o.ReadCloser.Close(), o.Under.Close()) }

// Exactly reads N bytes of R, and no more. Where R has fewer, the end is
// io.ErrUnexpectedEOF.
type Exactly struct {
	R io.Reader
	N int64 // what is left
	// Short says that more was asked for: so the end is io.ErrUnexpectedEOF.
	Short bool
	// Judged says that R ends where N bytes do, and may have an error to tell then.
	Judged bool
}

// Read implements io.Reader.
func (e *Exactly) Read(b []byte) (int, error) {
	if e.N == 0 {
		if e.Judged {
			e.Judged = false
			if n, err := e.R.Read(make([]byte, 1)); n == 0 && err != nil && err != io.EOF {
				return 0, err
			}
		}
		if e.Short {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, io.EOF
	}
	n, err := e.R.Read(b[:min(int64(len(b)), e.N)])
	if e.N -= int64(n); e.N > 0 {
		return n, Unexpected(err)
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// Watched is a reader that somebody watches: Saw gets the bytes of each read and its
// error, and returns the error that is passed on.
type Watched struct {
	io.ReadCloser
	Saw func(b []byte, err error) error
}

// Read implements io.Reader.
func (w *Watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	return n, w.Saw(b[:n], err)
}

// Unexpected makes of an end before its time io.ErrUnexpectedEOF.
func Unexpected(err error) error {
	if err == io.EOF { //nolint:errorlint // a wrapped end is a fault
		return io.ErrUnexpectedEOF
	}
	return err
}

// Source counts what is read of R, and remembers the error that reading ended
// with, for who reads through a decoder and must tell the two apart.
type Source struct {
	R   io.Reader
	N   int64 // bytes read
	Err error // nil for io.EOF
}

// Read implements io.Reader.
func (s *Source) Read(b []byte) (int, error) {
	n, err := s.R.Read(b)
	s.N += int64(n)
	if err != nil && err != io.EOF {
		s.Err = err
	}
	return n, err
}
