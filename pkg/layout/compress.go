package layout

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression is how a tar layer is compressed: what follows the "+" in its
// media type.
type Compression string

// The compressions of layers.
const (
	Uncompressed Compression = ""
	Gzip         Compression = "gzip"
	Zstd         Compression = "zstd"
)

const (
	// gzipLevel, zstdLevel and zstdWindow are part of the bytes that Compress
	// makes. The window is one that every reader accepts: RFC 8878 asks them for
	// 8 MiB.
	gzipLevel  = 6
	zstdLevel  = zstd.SpeedDefault
	zstdWindow = 4 << 20
	// compressChunk is how much is compressed at a time, in bytes.
	compressChunk = 64 << 10
)

// Compress returns the compressed form of what r gives. Its bytes are a
// function of r's alone: one thread, a fixed level and window, no name and no
// time. They are part of digests, so the version of the compressor in go.mod
// changes together with the tests that pin them. Close closes r.
func Compress(c Compression, r io.ReadCloser) (io.ReadCloser, error) {
	e := &compressor{src: r, chunk: make([]byte, compressChunk)}
	switch c {
	case Uncompressed:
		return r, nil
	case Gzip:
		w, err := gzip.NewWriterLevel(&e.out, gzipLevel)
		if err != nil {
			return nil, err
		}
		e.w = w
	case Zstd:
		w, err := zstd.NewWriter(&e.out, zstd.WithEncoderLevel(zstdLevel), zstd.WithWindowSize(zstdWindow),
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithZeroFrames(true))
		if err != nil {
			return nil, err
		}
		e.w = w
	default:
		return nil, errorf(ErrFormat, "layer", "has the compression %q; gzip and zstd are known", string(c))
	}
	return e, nil
}

// compressor turns a compressing writer into a reader.
type compressor struct {
	src   io.ReadCloser
	w     io.WriteCloser
	out   bytes.Buffer
	chunk []byte
	err   error // what Read returns when out is empty
}

func (e *compressor) Read(b []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.err = e.fill()
	}
	return e.out.Read(b)
}

func (e *compressor) Close() error { return e.src.Close() }

// fill compresses one chunk of src. Chunks are full but for the last, however
// src delivers: so the compressor sees one sequence of writes.
func (e *compressor) fill() error {
	n := 0
	for n < len(e.chunk) {
		m, err := e.src.Read(e.chunk[n:])
		n += m
		if err == io.EOF {
			if _, err := e.w.Write(e.chunk[:n]); err != nil {
				return err
			}
			if err := e.w.Close(); err != nil {
				return err
			}
			return io.EOF
		}
		if err != nil {
			return err
		}
	}
	_, err := e.w.Write(e.chunk)
	return err
}
