package pack

import (
	"errors"
	"io"
	"slices"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// pieces are what a file is made of as it is read: bytes, and spans of other files.
type pieces struct {
	list   []modelfile.Piece
	starts []int64 // where each begins in the file
	size   int64   // of the file
	of     []*file // what spans are of
}

// open opens the files that the pieces are of.
func (p *pieces) open() (content, error) {
	c := &piecesContent{pieces: p, files: make([]content, len(p.of))}
	for i := range p.list {
		n := p.list[i].File
		if p.list[i].Text != nil || c.files[n] != nil {
			continue
		}
		r, err := p.of[n].open()
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.files[n] = r
	}
	return c, nil
}

// piecesContent is the content of a file of pieces.
type piecesContent struct {
	*pieces
	files []content
	pos   int64 // of Read
}

// Read implements io.Reader.
func (c *piecesContent) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := c.ReadAt(b[:min(int64(len(b)), max(c.size-c.pos, 1))], c.pos)
	c.pos += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (c *piecesContent) ReadAt(b []byte, off int64) (n int, err error) {
	i, found := slices.BinarySearch(c.starts, off)
	if !found {
		i--
	}
	for ; n < len(b); i++ {
		if off < 0 || i < 0 || i == len(c.list) {
			return n, io.EOF
		}
		p := &c.list[i]
		within := off - c.starts[i]
		most := min(int64(len(b)-n), p.Size()-within)
		if p.Text != nil {
			copy(b[n:], p.Text[within:within+most])
		} else if got, err := c.files[p.File].ReadAt(b[n:n+int(most)], p.Off+within); int64(got) < most {
			return n + got, iox.Unexpected(err) // it has shrunk
		}
		n, off = n+int(most), off+most
	}
	return n, nil
}

// Close implements io.Closer.
func (c *piecesContent) Close() error {
	var errs []error
	for _, f := range c.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
