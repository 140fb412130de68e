package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Open streams the tar from offset off. Members are opened one after another,
// each when the stream reaches it, through open; a member whose content does
// not have the planned length ends the stream with ErrDigest, and so does not
// reach io.EOF. A member's own error, from opening or reading it, is passed on
// with its path.
//
// Every member that the stream reads to its end is read until open's reader
// says io.EOF, so that a reader which verifies there has its word.
func (p *TarPlan) Open(ctx context.Context, off int64, open MemberOpener) (io.ReadCloser, error) {
	if off < 0 || off > p.size {
		return nil, fmt.Errorf("open tar at offset %d: its size is %d", off, p.size)
	}
	s := &tarStream{
		items: p.items,
		pos:   off,
		size:  p.size,
		open: func(path string, off int64) (io.ReadCloser, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return open(ctx, path, off)
		},
	}
	// The last item whose header begins at or before off.
	i, found := slices.BinarySearchFunc(p.items, off, func(it tarItem, off int64) int {
		switch {
		case it.header < off:
			return -1
		case it.header > off:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	s.next = max(i, 0)
	return s, nil
}

// tarStream is a tar being read. It moves from stage to stage: the bytes in
// buf, then the member in content, then zeros, then the next item.
type tarStream struct {
	items []tarItem
	next  int // the item to begin with when all stages are through
	pos   int64
	size  int64
	open  func(path string, off int64) (io.ReadCloser, error)

	buf     []byte        // what is left of a header
	path    string        // the member that content is of
	content io.ReadCloser // nil where no member is open
	left    int64         // bytes of content still to come
	zeros   int64         // bytes of padding still to come
	pending func() error  // opens the member behind the header in buf
	err     error         // what every further Read returns
}

func (s *tarStream) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, s.err
	}
	for s.err == nil {
		n, err := s.stage(b)
		s.pos += int64(n)
		if err != nil {
			s.fail(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, s.err
}

// Close closes the member that is open. Reading after it fails.
func (s *tarStream) Close() error {
	if s.err == nil {
		s.err = errors.New("tar stream is closed")
	}
	return s.closeContent()
}

// stage gives bytes of the current stage, or 0 when it went on to another.
func (s *tarStream) stage(b []byte) (int, error) {
	switch {
	case len(s.buf) > 0:
		n := copy(b, s.buf)
		s.buf = s.buf[n:]
		return n, nil
	case s.pending != nil:
		open := s.pending
		s.pending = nil
		return 0, open()
	case s.content != nil:
		return s.readContent(b)
	case s.zeros > 0:
		n := int(min(s.zeros, int64(len(b))))
		clear(b[:n])
		s.zeros -= int64(n)
		return n, nil
	}
	return 0, s.begin()
}

// begin starts with the next item, at pos, which may lie inside it.
func (s *tarStream) begin() error {
	if s.next == len(s.items) {
		if s.pos == s.size {
			return io.EOF
		}
		s.zeros = s.size - s.pos
		return nil
	}
	it := &s.items[s.next]
	s.next++
	if s.pos < it.data {
		header, err := it.headerBytes()
		if err != nil {
			return err
		}
		s.buf = header[s.pos-it.header:]
	}
	skip := max(0, s.pos-it.data)
	s.zeros = it.end() - max(s.pos, it.data+it.Size) // below 0 for an offset in the end blocks
	if it.folder || it.Target != "" || (skip > 0 && skip >= it.Size) {
		return nil
	}
	s.pending = func() error { return s.openContent(it, skip) }
	return nil
}

func (s *tarStream) openContent(it *tarItem, off int64) error {
	r, err := s.open(it.Path, off)
	if err != nil {
		return fmt.Errorf("open %s: %w", quote(it.Path), err)
	}
	s.path, s.content, s.left = it.Path, r, it.Size-off
	return nil
}

// readContent gives bytes of the open member. Behind the last it wants io.EOF.
func (s *tarStream) readContent(b []byte) (int, error) {
	if s.left == 0 {
		n, err := s.content.Read(make([]byte, 1))
		switch {
		case n > 0:
			return 0, errorf(ErrDigest, s.path, "its content is longer than was planned")
		case err == nil:
			return 0, nil
		case err != io.EOF:
			return 0, fmt.Errorf("read %s: %w", quote(s.path), err)
		}
		return 0, s.closeContent()
	}
	n, err := s.content.Read(b[:min(s.left, int64(len(b)))])
	s.left -= int64(n)
	atEnd := err == io.EOF // a wrapped one is a fault, not the end
	switch {
	case atEnd && s.left == 0:
		return n, s.closeContent()
	case atEnd:
		return n, errorf(ErrDigest, s.path, "its content ends %d bytes before its planned size", s.left)
	case err != nil:
		return n, fmt.Errorf("read %s: %w", quote(s.path), err)
	}
	return n, nil
}

func (s *tarStream) closeContent() error {
	if s.content == nil {
		return nil
	}
	r := s.content
	s.content = nil
	if err := r.Close(); err != nil {
		return fmt.Errorf("close %s: %w", quote(s.path), err)
	}
	return nil
}

// fail ends the stream.
func (s *tarStream) fail(err error) {
	s.err = err
	s.closeContent() //nolint:errcheck // the error that ended the stream comes first
}
