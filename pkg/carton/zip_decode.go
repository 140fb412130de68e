package carton

import (
	"context"
	"errors"
	"io"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/zipdir"
	"github.com/carton-oci/carton-oci/internal/zstdframe"
)

// decodeZip gives the content of packed, the bytes of a member as they lie in
// the zip. All of packed must belong to the one deflate stream or zstd frame.
func decodeZip(ctx context.Context, path string, method zipdir.Method, packed io.Reader) io.ReadCloser {
	if method == zipdir.Stored {
		return io.NopCloser(packed)
	}
	source := &iox.Source{R: packed}
	if method == zipdir.Zstd {
		return &decoder{r: zstdframe.NewReader(ctx, source, MaxZstdWindow), source: source, path: path}
	}
	return &decoder{r: zipdir.Inflate(source), source: source, path: path}
}

// decoder tells corrupt data from data that could not be read.
type decoder struct {
	r      io.ReadCloser
	source *iox.Source
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
	case d.source.Err != nil:
		return d.source.Err
	case errors.Is(err, zstdframe.ErrWindow):
		return &Error{Path: d.path, Kind: ErrLimit, Msg: "zstd frame asks for a window over 128 MiB", Err: err}
	}
	return &Error{Path: d.path, Kind: ErrChecksum, Msg: "can't be decompressed", Err: err}
}
