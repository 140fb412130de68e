package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
)

// headerAtOnce is how much of a file with a header is asked for first, in bytes: a
// header of 100 kB, however that is counted, and its length. Nearly all are
// shorter.
const headerAtOnce = 8 + 100<<10

// readHeader reads the header of a file. What is wrong with it is broken; err is
// the source's.
func readHeader(ctx context.Context, src carton.Source, f file, s *budget) (c *modelfile.Content, broken, err error) {
	in, err := openHeader(ctx, src, f, s)
	if err == nil {
		defer in.Close()
		source := &iox.Source{R: in}
		c, broken = f.reader().ReadHeader(source, f.Size)
		// Where nobody knows the size, a range may reach past the end.
		if err = source.Err; f.Size < 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the header of %s: %w", errtext.Quote(f.Path), err)
	}
	return c, broken, nil
}

// readArchive reads the directory of a file, and its documents.
func readArchive(ctx context.Context, src carton.Source, f file, s *budget) (c *modelfile.Content, broken, err error) {
	if err := s.all(ctx); err != nil {
		return nil, nil, err
	}
	in := &memberAt{ctx: ctx, src: src, member: f.Member}
	c, broken = f.reader().ReadArchive(in, f.Size)
	return c, broken, in.Close()
}

// openHeader opens the beginning of a file, as much of it as its header needs, and
// sees to it that there is the memory for it: where ranges are cheap one of them,
// or two where the header is long.
func openHeader(ctx context.Context, src carton.Source, f file, s *budget) (io.ReadCloser, error) {
	if !ranged(f.Member) {
		return openForward(ctx, src, f, s)
	}
	n := int64(headerAtOnce)
	if f.Size >= 0 {
		n = min(n, f.Size)
	}
	var begin []byte
	var err error
	if n > 0 {
		begin, err = readRange(ctx, src, f.Member, 0, n)
	}
	in := bytes.NewReader(begin)
	if err != nil || len(begin) < 8 {
		return io.NopCloser(in), err
	}
	header := headerBytes(f.reader(), begin)
	if !s.enough(header) {
		if err := s.all(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case int64(len(begin)) < n || f.Size == n || header >= 0 && header <= n:
		return io.NopCloser(in), nil
	case header < 0:
		header = n - 1 // to the end
	case f.Size >= 0:
		header = min(header, f.Size)
	}
	rest, err := src.OpenRange(ctx, f.Path, n, header-n)
	if err != nil {
		return nil, err
	}
	return iox.ReadCloser{Reader: io.MultiReader(in, rest), Closer: rest}, nil
}

// openForward opens a file where ranges are expensive. Where others have the memory
// that its header needs, it is closed until they are done.
func openForward(ctx context.Context, src carton.Source, f file, s *budget) (io.ReadCloser, error) {
	for {
		stream, err := src.OpenRange(ctx, f.Path, 0, -1)
		if err != nil {
			return nil, err
		}
		begin := make([]byte, 8)
		n, err := io.ReadFull(stream, begin)
		short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // the stream says so again
		if short || err == nil && s.enough(headerBytes(f.reader(), begin)) {
			return iox.ReadCloser{Reader: io.MultiReader(bytes.NewReader(begin[:n]), stream), Closer: stream}, nil
		}
		_ = stream.Close() // nothing more is wanted of it
		if err == nil {
			err = s.all(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// headerBytes returns where the header of a file ends that begins so, -1 where that
// can't be told.
func headerBytes(format *modelfile.Format, begin []byte) int64 {
	if format.HeaderBytes == nil {
		return -1
	}
	return format.HeaderBytes([8]byte(begin))
}

// readRange reads n bytes of a member, unverified; fewer where the member's size
// is not known and it ends before.
func readRange(ctx context.Context, src carton.Source, m carton.Member, off, n int64) ([]byte, error) {
	in, err := src.OpenRange(ctx, m.Path, off, n)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	// As much as comes, not as much as was asked for at once: a header may be long
	// and a size a lie.
	var b bytes.Buffer
	_, err = io.Copy(&b, in)
	if m.Size < 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return b.Bytes(), err
}
