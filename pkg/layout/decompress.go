package layout

import (
	"bufio"
	"context"
	"io"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/zstdframe"
	"github.com/klauspost/compress/gzip"
)

// Decompress returns the tar inside a compressed layer: exactly one gzip member
// or one zstd frame with a window of at most [MaxZstdWindow]; it reads r to its
// end. More members or frames, and data behind them, are ErrFormat, and so is a
// broken stream; an error of r is passed on. Nothing bounds what comes out: the
// caller knows how much it wants. ctx ends the wait for the memory of a large window. Close
// does not close r.
func Decompress(ctx context.Context, c Compression, r io.Reader) (io.ReadCloser, error) {
	d := &decompressor{name: string(c), src: iox.Source{R: r}}
	switch c {
	case Uncompressed:
		return io.NopCloser(r), nil
	case Gzip:
	case Zstd:
		d.body = zstdframe.NewReader(ctx, &d.src, MaxZstdWindow)
	default:
		return nil, errorf(ErrFormat, "layer", "has the compression %q; gzip and zstd are known", string(c))
	}
	return d, nil
}

// decompressor tells faults of the stream from errors of where it comes from.
type decompressor struct {
	name string
	src  iox.Source
	body io.ReadCloser // of gzip nil before the first Read
	err  error
}

func (d *decompressor) Read(b []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.body == nil {
		if d.body, d.err = d.gunzip(); d.err != nil {
			d.err = d.fault(d.err)
			return 0, d.err
		}
	}
	n, err := d.body.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		err = d.fault(err)
	}
	d.err = err
	return n, err
}

func (d *decompressor) Close() error {
	if d.body == nil {
		return nil
	}
	return d.body.Close()
}

func (d *decompressor) fault(err error) error {
	if d.src.Err != nil {
		return d.src.Err
	}
	return &Error{Object: "layer", Kind: ErrFormat, Msg: "is not one " + d.name + " stream", Err: err}
}

// gunzip reads one member and wants the source's end behind it.
func (d *decompressor) gunzip() (io.ReadCloser, error) {
	buf := bufio.NewReaderSize(&d.src, 64<<10)
	z, err := gzip.NewReader(buf)
	if err != nil {
		return nil, iox.Unexpected(err)
	}
	z.Multistream(false)
	return &gzipMember{Reader: z, rest: buf}, nil
}

type gzipMember struct {
	*gzip.Reader
	rest *bufio.Reader
}

func (g *gzipMember) Read(b []byte) (int, error) {
	n, err := g.Reader.Read(b)
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		switch _, more := g.rest.ReadByte(); more {
		case nil:
			err = errorf(ErrFormat, "", "data behind the gzip member")
		case io.EOF:
		default:
			err = more
		}
	}
	return n, err
}
