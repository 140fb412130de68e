package links

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// contentEncoding returns the encoding of a response, "" where there is none.
// More than one is refused: nothing serves files so, and each multiplies what a
// small response can become.
func contentEncoding(h http.Header) (string, error) {
	found := ""
	for _, value := range h.Values("Content-Encoding") {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			switch {
			case name == "" || name == "identity":
				continue
			case found != "":
				return "", errorf(carton.ErrLink, "", "the host sent more than one content-encoding")
			}
			found = name
		}
	}
	switch found {
	case "x-gzip": // RFC 9110, section 8.4.1.3
		return "gzip", nil
	case "", "gzip", "deflate", "br", "zstd":
		return found, nil
	}
	return "", errorf(carton.ErrLink, "",
		"the host sent the content-encoding %s, which is none of gzip, deflate, br and zstd", errtext.OneLine(found))
}

// decodeContent decodes body, and closes it with what it returns.
func decodeContent(encoding string, body io.ReadCloser) (io.ReadCloser, error) {
	d := &decoded{encoding: encoding, src: &iox.Source{R: body}, body: body}
	var err error
	switch encoding {
	case "gzip":
		d.r, err = gzip.NewReader(d.src)
	case "deflate":
		d.r, err = inflate(d.src)
	case "br":
		d.r = brotli.NewReader(d.src)
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(d.src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(MaxZstdWindow))
		if err == nil {
			d.r, d.free = z, z.Close
		}
	}
	if err != nil {
		return nil, d.fault(err)
	}
	return d, nil
}

// inflate decodes "deflate", which is zlib's format (RFC 9110, section 8.4.1.2)
// but was long sent without zlib's header.
func inflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// decoded is the content of an encoded body.
type decoded struct {
	encoding string
	src      *iox.Source
	r        io.Reader
	body     io.Closer
	free     func()
	n        int64 // bytes decoded
}

// expansionSlack is how many bytes may be decoded of however few.
const expansionSlack = 64 << 20

func (d *decoded) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if d.n += int64(n); d.n > expansionSlack && d.n/MaxExpansion > d.src.N {
		return 0, errorf(carton.ErrLimit, "", "%d bytes of %s have become over %d: more than %d times as many", d.src.N,
			d.encoding, d.n-int64(n), MaxExpansion)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // a decoder's end is bare
		err = d.fault(err)
	}
	return n, err
}

func (d *decoded) Close() error {
	if d.free != nil {
		d.free()
	}
	return d.body.Close()
}

// fault is the error for content that can't be decoded, or not be read.
func (d *decoded) fault(err error) error {
	if d.src.Err != nil {
		return d.src.Err // a decoder would only say that its input ended
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &carton.Error{Kind: carton.ErrLink, Msg: "content does not decode as " + d.encoding, Err: err}
}
