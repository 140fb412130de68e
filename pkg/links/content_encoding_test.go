package links_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// encode compresses b the way a server would.
func encode(t *testing.T, encoding string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zlib":
		w = zlib.NewWriter(&out)
	case "raw deflate":
		w, err = flate.NewWriter(&out, flate.BestSpeed)
	case "br":
		w = brotli.NewWriter(&out)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// encoded serves a body with a content-encoding, ranges of the encoded bytes
// included.
func encoded(encoding string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, e := range strings.Split(encoding, "|") {
			w.Header().Add("Content-Encoding", e)
		}
		serveContent(body)(w, r)
	}
}

func TestLinkEncodings(t *testing.T) {
	data := numbers(300_000)
	for _, c := range []struct{ header, as string }{
		{"gzip", "gzip"},
		{"x-gzip", "gzip"},
		{"GZIP", "gzip"},
		{"deflate", "zlib"},
		{"deflate", "raw deflate"},
		{"br", "br"},
		{"zstd", "zstd"},
		{"identity, zstd", "zstd"},
	} {
		t.Run(c.header+" as "+c.as, func(t *testing.T) {
			s := newHost(t, encoded(c.header, encode(t, c.as, data)))
			f := allowing(links.Options{}, s)
			for _, r := range []struct {
				off, n   int64
				from, to int
				err      error
			}{
				{0, -1, 0, 300_000, nil},
				{0, 10, 0, 10, nil},
				{200_000, 100, 200_000, 200_100, nil},
				{299_999, -1, 299_999, 300_000, nil},
				{300_000, -1, 0, 0, nil},
				{299_999, 2, 299_999, 300_000, io.ErrUnexpectedEOF},
				{300_001, -1, 0, 0, io.ErrUnexpectedEOF},
				{400_000, 5, 0, 0, io.ErrUnexpectedEOF},
			} {
				got, err := fetch(t.Context(), f, s.URL, r.off, r.n)
				if err != r.err || !bytes.Equal(got, data[r.from:r.to]) { //nolint:errorlint // the end comes bare
					t.Errorf("%d bytes from %d: got %d bytes, %v", r.n, r.off, len(got), err)
				}
			}
			if size, err := f.Size(t.Context(), links.Link{URL: s.URL}); err != nil || size != -1 {
				t.Errorf("size: got %d, %v, want -1", size, err)
			}
		})
	}
}

func TestLinkEncodingsThatAreRefused(t *testing.T) {
	data := numbers(300_000)
	gz := encode(t, "gzip", data)
	for _, c := range []struct {
		name, header string
		body         []byte
		want         string
	}{
		{"unknown", "compress", data, "the host sent the content-encoding compress"},
		{"stacked", "gzip, br", gz, "more than one"},
		{"stacked in two headers", "gzip|gzip", gz, "more than one"},
		{"raw sent as gzip", "gzip", data, "does not decode as gzip"},
		{"raw sent as zstd", "zstd", data, "does not decode as zstd"},
		{"raw sent as br", "br", bytes.Repeat([]byte{0xff}, 100), "does not decode as br"},
		{"raw sent as deflate", "deflate", bytes.Repeat([]byte{0xff}, 100), "does not decode as deflate"},
		{"nothing sent as gzip", "gzip", nil, "does not decode as gzip"},
		{"cut gzip", "gzip", gz[:len(gz)/2], "does not decode as gzip"},
		{"gzip with junk behind it", "gzip", append(bytes.Clone(gz), "junk"...), "does not decode as gzip"},
		{"cut zstd", "zstd", encode(t, "zstd", data)[:1000], "does not decode as zstd"},
		{"cut br", "br", encode(t, "br", data)[:1000], "does not decode as br"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newHost(t, encoded(c.header, c.body))
			_, err := fetch(t.Context(), allowing(links.Options{}, s), s.URL, 0, -1)
			if !errors.Is(err, carton.ErrLink) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLinkEncodedReadGoesOn: a connection that breaks inside an encoded body is
// continued in the encoded bytes.
func TestLinkEncodedReadGoesOn(t *testing.T) {
	data := numbers(300_000)
	body := encode(t, "gzip", data)
	var s *host
	s = newHost(t, func(w http.ResponseWriter, r *http.Request) {
		if s.requests.Load() > 1 {
			encoded("gzip", body)(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", "100000000")
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	})
	got, err := fetch(t.Context(), allowing(links.Options{}, s), s.URL, 0, -1)
	if err == nil {
		t.Fatalf("got %d bytes of a content whose stated size changed", len(got))
	}

	s = newHost(t, func(w http.ResponseWriter, r *http.Request) {
		if s.requests.Load() > 1 {
			encoded("gzip", body)(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	got, err = fetch(t.Context(), allowing(links.Options{}, s), s.URL, 0, -1)
	if err != nil || !bytes.Equal(got, data) || s.requests.Load() != 2 {
		t.Errorf("got %d bytes, %v after %d requests", len(got), err, s.requests.Load())
	}
}

// TestLinkBombs: what decodes to far too much ends at the limit, and what asks
// for a large window before that; neither costs memory.
func TestLinkBombs(t *testing.T) {
	testenv.Heavy(t)
	const most = 16 << 20
	var zeros bytes.Buffer
	w, err := zstd.NewWriter(&zeros, zstd.WithWindowSize(4<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var wide bytes.Buffer
	w, err = zstd.NewWriter(&wide, zstd.WithWindowSize(512<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zeroReader{}, 9<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		header string
		body   []byte
		kind   error
	}{
		"gzip":             {"gzip", encode(t, "gzip", make([]byte, most+1)), carton.ErrLimit},
		"br":               {"br", encode(t, "br", make([]byte, most+1)), carton.ErrLimit},
		"zstd":             {"zstd", bytes.Repeat(zeros.Bytes(), 17), carton.ErrLimit},
		"zstd wide window": {"zstd", wide.Bytes(), zstd.ErrWindowSizeExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHost(t, encoded(c.header, c.body))
			f := allowing(links.Options{MaxBytes: most}, s)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := f.Open(t.Context(), links.Link{URL: s.URL}, 0, -1)
			var n int64
			if err == nil {
				n, err = io.Copy(io.Discard, r)
				r.Close()
			}
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.kind) || n > most {
				t.Errorf("got %d bytes, %v, want %v", n, err, c.kind)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 48<<20 {
				t.Errorf("allocated %d MiB", used>>20)
			}
		})
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
