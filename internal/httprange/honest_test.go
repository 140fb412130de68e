package httprange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// honest is a server without a network that never sends wrong bytes, but does
// whatever else a script of bytes tells it: one step a request.
type honest struct {
	data   []byte
	script []byte
}

// next takes one byte of the script; after its end the server behaves.
func (h *honest) next() byte {
	if len(h.script) == 0 {
		return 0
	}
	c := h.script[0]
	h.script = h.script[1:]
	return c
}

func (h *honest) Do(req *http.Request) (*http.Response, error) {
	size := len(h.data)
	first, last := 0, size-1
	ranged := false
	if r := req.Header.Get("Range"); r != "" {
		ranged = true
		if _, err := fmt.Sscanf(r, "bytes=%d-%d", &first, &last); err != nil {
			if _, err := fmt.Sscanf(r, "bytes=%d-", &first); err != nil {
				return nil, fmt.Errorf("range %q", r)
			}
		}
		last = min(last, size-1)
	}
	resp := &http.Response{StatusCode: http.StatusPartialContent, Header: http.Header{}, ContentLength: -1}
	step := h.next()
	switch step % 12 {
	case 1: // sends less than was asked for
		last = max(first, last-int(h.next()))
	case 2: // begins earlier
		first = max(0, first-int(h.next()))
	case 3: // begins elsewhere
		first = min(size-1, first+int(h.next()))
		last = max(first, last)
	case 4: // honours no ranges
		ranged = false
	case 5:
		return nil, errors.New("connection refused")
	case 6:
		resp.StatusCode = http.StatusServiceUnavailable
		resp.Body = io.NopCloser(strings.NewReader("busy"))
		return resp, nil
	case 7:
		resp.StatusCode = http.StatusRequestedRangeNotSatisfiable
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		resp.Body = http.NoBody
		return resp, nil
	}
	if ranged && first >= size {
		resp.StatusCode = http.StatusRequestedRangeNotSatisfiable
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		resp.Body = http.NoBody
		return resp, nil
	}
	if !ranged {
		resp.StatusCode, first, last = http.StatusOK, 0, size-1
	} else {
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
	}
	body := io.Reader(bytes.NewReader(h.data[first : last+1]))
	if step&0x80 != 0 { // states its length
		resp.ContentLength = int64(last + 1 - first)
	}
	if step&0x40 != 0 { // breaks
		body = io.MultiReader(io.LimitReader(body, int64(h.next())), broken{})
	}
	resp.Body = io.NopCloser(body)
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// FuzzHonestServer: whatever an honest server does to its framing, what is read
// without an error is what was asked for, and the end is where it should be.
func FuzzHonestServer(f *testing.F) {
	f.Add([]byte{}, uint16(0), int16(-1), true)
	f.Add([]byte{0x40, 10, 0xc0, 20, 4, 0x44, 30, 2, 9}, uint16(100), int16(150), false)
	f.Add([]byte{1, 200, 3, 7, 5, 6, 0xc4, 3}, uint16(10), int16(-1), true)
	f.Add([]byte{7, 7}, uint16(299), int16(2), true)
	f.Fuzz(func(t *testing.T, script []byte, off uint16, n int16, known bool) {
		data := content(300)
		size := int64(-1)
		if known {
			size = int64(len(data))
		}
		g := &Getter{Do: (&honest{data: data, script: script}).Do, Policy: fast()}
		got, err := read(t, g, "http://models.example/x", int64(off), int64(n), size)
		from := min(int(off), len(data))
		to, short := len(data), int(off) > len(data)
		if n >= 0 {
			to = min(from+int(n), len(data))
			short = int(off)+int(n) > len(data)
		}
		if n == 0 && !known {
			short = false // nothing was asked for, so nobody said where the end is
		}
		if !bytes.HasPrefix(data[from:], got) || len(got) > to-from {
			t.Fatalf("got %d bytes from %d that are not the content's", len(got), off)
		}
		switch {
		case err == nil && (len(got) != to-from || short):
			t.Errorf("%d bytes from %d: got %d without an error", n, off, len(got))
		case err == io.ErrUnexpectedEOF && (len(got) != to-from || !short): //nolint:errorlint // the end comes bare
			t.Errorf("%d bytes from %d: got %d and the content's end", n, off, len(got))
		}
	})
}
