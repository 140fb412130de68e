package layout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/carton-oci/carton-oci/internal/iox"
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
	s := &tarStream{size: p.size, pos: off, open: func(path string, off int64) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return open(ctx, path, off)
	}}
	// The last item whose header begins at or before off.
	i := sort.Search(len(p.items), func(i int) bool { return p.items[i].header > off })
	s.items = p.items[max(i-1, 0):]
	return s, nil
}

// tarStream is a tar being read. Its position says which part is due: a header, a
// member's content, or zeros.
type tarStream struct {
	items []tarItem // that are not through
	pos   int64
	size  int64
	open  func(path string, off int64) (io.ReadCloser, error)

	part io.ReadCloser // nil where the next is to be opened
	err  error         // what every further Read returns
}

func (s *tarStream) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, s.err
	}
	for s.err == nil {
		if s.part == nil {
			s.part, s.err = s.next()
			continue
		}
		n, err := s.part.Read(b)
		s.pos += int64(n)
		if err == io.EOF { //nolint:errorlint // a wrapped one is a fault, not the end
			err = s.closePart()
		}
		if s.err = err; err != nil {
			s.closePart() //nolint:errcheck // the error that ended the stream comes first
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
	return s.closePart()
}

func (s *tarStream) closePart() error {
	if s.part == nil {
		return nil
	}
	part := s.part
	s.part = nil
	return part.Close()
}

// next opens the part at pos. An item is through when its content is open.
func (s *tarStream) next() (io.ReadCloser, error) {
	if len(s.items) == 0 {
		if s.pos == s.size {
			return nil, io.EOF
		}
		return zeros(s.size - s.pos), nil
	}
	it := &s.items[0]
	if s.pos < it.data {
		header, err := it.headerBytes()
		return io.NopCloser(bytes.NewReader(header[min(s.pos-it.header, int64(len(header))):])), err
	}
	s.items = s.items[1:]
	off, padding := s.pos-it.data, zeros(it.end()-max(s.pos, it.data+it.Size))
	if it.folder || it.Target != "" || off > 0 && off >= it.Size {
		return padding, nil
	}
	r, err := s.open(it.Path, off)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", quote(it.Path), err)
	}
	content := &iox.Verifier{
		R: r, Size: it.Size - off,
		Wrong:  func(text string) error { return errorf(ErrDigest, it.Path, "%s", text) },
		Broken: func(err error) error { return fmt.Errorf("read %s: %w", quote(it.Path), err) },
	}
	return iox.ReadCloser{Reader: io.MultiReader(content, padding), Closer: closerFunc(func() error {
		if err := r.Close(); err != nil {
			return fmt.Errorf("close %s: %w", quote(it.Path), err)
		}
		return nil
	})}, nil
}

// zeros are so many of them; none for a number below 0.
func zeros(n int64) io.ReadCloser {
	return io.NopCloser(io.LimitReader(readerFunc(func(b []byte) (int, error) { clear(b); return len(b), nil }), n))
}
