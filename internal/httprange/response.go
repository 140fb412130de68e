package httprange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/internal/stall"
)

// errPlain: this server's ranges are not to be trusted for this content.
var errPlain = errors.New("ask for the whole")

// attempt is a response with an error status.
type attempt struct {
	err    error
	header http.Header
	retry  bool
}

func (a *attempt) Error() string { return a.err.Error() }
func (a *attempt) Unwrap() error { return a.err }

// response is one response that is being read.
type response struct {
	resp *http.Response
	last bool // the end of this response is the end of the content
}

// request sends one request for what is left and checks the response.
func (b *Body) request() error {
	resp, ranged, err := b.send()
	if err != nil {
		return err
	}
	b.current = &response{resp: resp}
	skip, err := b.accept(resp, ranged)
	if err != nil {
		return err
	}
	if b.header == nil {
		b.header = resp.Header
	}
	if b.end >= 0 && b.pos >= b.end {
		b.drop() // the content ends before the range
		return nil
	}
	b.current.last = b.size < 0
	return b.skip(skip)
}

// skip drops the bytes of the current response that lie before b.pos.
func (b *Body) skip(left int64) error {
	for buf := make([]byte, min(left, 32<<10)); left > 0; {
		n, err := b.current.read(buf[:min(left, int64(len(buf)))], nil)
		left -= int64(n)
		switch {
		case left == 0 || err == nil:
		case err == io.EOF && b.current.last: //nolint:errorlint // a wrapped one is a broken connection
			b.learnSize(b.pos - left)
			b.drop()
			return nil
		default:
			return fmt.Errorf("response ended %d bytes before the range: %w", left, iox.Unexpected(err))
		}
	}
	return nil
}

// send sends one request, with a Range unless everything is wanted.
func (b *Body) send() (resp *http.Response, ranged bool, err error) {
	req, err := b.newRequest(b.ctx)
	if err != nil {
		return nil, false, &attempt{err: withoutURL(err)}
	}
	b.url = req.URL
	ranged = b.ask(req)
	began := time.Now()
	resp, err = b.g.Do(req)
	b.meter.Add(0, time.Since(began))
	if err != nil {
		// A connection that ends without an answer is no end of the content.
		return nil, false, iox.Unexpected(withoutURL(err))
	}
	if b.g.Answered != nil {
		b.g.Answered.Store(true)
	}
	return resp, ranged, nil
}

// ask sets the headers that say what is wanted, and reports whether that is a
// range.
func (b *Body) ask(req *http.Request) bool {
	if req.Header.Get("Accept-Encoding") == "" {
		// Sizes and offsets are those of the content. It also keeps net/http from
		// decoding behind our back.
		req.Header.Set("Accept-Encoding", "identity")
	}
	if b.suffix > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=-%d", b.suffix))
		return true
	}
	whole := b.pos == 0 && (b.end < 0 || b.end == b.size)
	if b.plain || whole {
		return false
	}
	last := ""
	if b.end >= 0 {
		last = strconv.FormatInt(b.end-1, 10)
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%s", b.pos, last))
	if b.g.Pinned {
		b.pin.ask(req)
	}
	return true
}

// accept checks a response and returns how many of its bytes lie before b.pos.
func (b *Body) accept(resp *http.Response, ranged bool) (skip int64, err error) {
	switch {
	case resp.StatusCode == http.StatusOK:
		return b.acceptWhole(resp, ranged)
	case resp.StatusCode == http.StatusPartialContent && ranged:
		return b.acceptPart(resp)
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && ranged:
		return 0, b.acceptPast(resp)
	case resp.StatusCode < 400:
		return 0, &attempt{err: fmt.Errorf("%w: got status %d, want %d", ErrAnswer, resp.StatusCode, http.StatusOK)}
	}
	return 0, b.g.statusError(resp)
}

func (b *Body) acceptWhole(resp *http.Response, ranged bool) (skip int64, err error) {
	if err := b.pin.check(resp.Header, b.g.Pinned); err != nil {
		return 0, err
	}
	if ranged && b.needRanges && resp.ContentLength != 0 { // of nothing there is no range
		return 0, fmt.Errorf("%w: got status 200, want 206", ranges.ErrNone)
	}
	// A length is one of the content only where nothing was decoded on the way.
	if resp.ContentLength >= 0 && !resp.Uncompressed {
		if err := b.sized(resp.ContentLength); err != nil {
			return 0, err
		}
	}
	return b.pos, nil
}

func (b *Body) acceptPart(resp *http.Response) (skip int64, err error) {
	part, err := parseContentRange(resp.Header.Get("Content-Range"))
	length := part.last - part.first + 1
	if b.suffix > 0 && err == nil {
		b.pos, b.suffix = max(part.first, 0), 0 // the answer says where the end is
	}
	switch {
	case err != nil, part.first > b.pos, part.last < b.pos, part.size < 0,
		resp.ContentLength >= 0 && resp.ContentLength != length,
		ranges.IsOnly(b.ctx) && (part.first < b.pos || b.end >= 0 && part.last >= b.end):
		if b.needRanges {
			return 0, fmt.Errorf("%w: asked for byte %d, got Content-Range %s", ranges.ErrNone, b.pos,
				errtext.OneLine(strconv.Quote(resp.Header.Get("Content-Range"))))
		}
		return 0, errPlain
	}
	if err := b.pin.check(resp.Header, b.g.Pinned); err != nil {
		return 0, err
	}
	if err := b.sized(part.size); err != nil {
		return 0, err
	}
	// A server may send less than was asked for, and must not send more than it
	// says.
	resp.Body = iox.ReadCloser{Reader: io.LimitReader(resp.Body, length), Closer: resp.Body}
	return b.pos - part.first, nil
}

// acceptPast judges a 416: right where the content ends at or before b.pos.
func (b *Body) acceptPast(resp *http.Response) error {
	part, err := parseContentRange(resp.Header.Get("Content-Range"))
	switch {
	case err == nil && part.first < 0 && part.size >= 0 && part.size <= b.pos:
		return b.sized(part.size)
	case ranges.IsOnly(b.ctx):
		return fmt.Errorf("%w: got status 416 for byte %d", ranges.ErrNone, b.pos)
	case b.needRanges:
		return b.g.statusError(resp)
	}
	return errPlain
}

// sized notes the size that a response states.
func (b *Body) sized(size int64) error {
	if b.size >= 0 && b.size != size {
		kind := ErrAnswer
		if b.g.Pinned {
			kind = ErrChanged
		}
		return fmt.Errorf("%w: content has %d bytes, want %d", kind, size, b.size)
	}
	b.learnSize(size)
	return nil
}

// statusError makes the error of a response with an error status.
func (g *Getter) statusError(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what came is shown
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	a := &attempt{header: resp.Header, retry: g.Policy.Retryable(resp.StatusCode)}
	if g.CheckResponse != nil {
		a.err = g.CheckResponse(resp)
	}
	if a.err == nil {
		a.err = newStatusError(resp)
	}
	return a
}

func (r *response) read(p []byte, m *stall.Meter) (int, error) {
	began := time.Now()
	n, err := r.resp.Body.Read(p)
	if waited := time.Since(began); m != nil {
		m.Add(n, waited)
	}
	return n, err
}

func (r *response) close() {
	r.resp.Body.Close()
}

// part is a Content-Range: bytes first to last of size; first is -1 for an
// unsatisfied range, size -1 for one that is not stated.
type part struct{ first, last, size int64 }

// parseContentRange reads "bytes 0-99/100", "bytes 0-99/*" and "bytes */100"
// (RFC 9110, section 14.4).
func parseContentRange(value string) (part, error) {
	bad := fmt.Errorf("%w: Content-Range %s", ErrAnswer, errtext.OneLine(strconv.Quote(value)))
	unit, rest, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return part{}, bad
	}
	span, total, ok := strings.Cut(rest, "/")
	if !ok {
		return part{}, bad
	}
	p := part{first: -1, last: -1, size: -1}
	if total != "*" {
		if p.size, ok = parseOffset(total); !ok {
			return part{}, bad
		}
	}
	if span == "*" {
		if p.size < 0 {
			return part{}, bad
		}
		return p, nil
	}
	first, last, ok := strings.Cut(span, "-")
	if !ok {
		return part{}, bad
	}
	var ok1, ok2 bool
	p.first, ok1 = parseOffset(first)
	p.last, ok2 = parseOffset(last)
	if !ok1 || !ok2 || p.last < p.first || p.size >= 0 && p.last >= p.size {
		return part{}, bad
	}
	return p, nil
}

func parseOffset(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v < 1<<63-1
}
