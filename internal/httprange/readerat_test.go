package httprange

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/google/go-cmp/cmp"
)

// tagged honours ranges and says which content it is.
func tagged(data []byte, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		whole(data)(w, r)
	}
}

func readerAt(t *testing.T, s *server) *ReaderAt {
	t.Helper()
	r, err := NewReaderAt(t.Context(), s.getter(), get(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestReaderAtReadsLikeTheContent(t *testing.T) {
	for _, n := range []int{0, 1, readahead.TailBytes, readahead.TailBytes + 1, 600_000} {
		data := content(n)
		s := serve(t, tagged(data, `"1"`))
		r := readerAt(t, s)
		if r.Size() != int64(n) {
			t.Errorf("%d bytes: got size %d", n, r.Size())
		}
		if err := iotest.TestReader(io.NewSectionReader(r, 0, r.Size()), data); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestReaderAtRequests: what reads cost.
func TestReaderAtRequests(t *testing.T) {
	const size = 10 << 20
	data := content(size)
	s := serve(t, tagged(data, `"1"`))
	r := readerAt(t, s)
	read := func(off, n int) {
		t.Helper()
		p := make([]byte, n)
		if _, err := r.ReadAt(p, int64(off)); err != nil || !bytes.Equal(p, data[off:off+n]) {
			t.Fatalf("%d bytes from %d: %v", n, off, err)
		}
	}
	read(size-22, 22)                     // in the tail
	read(size-readahead.TailBytes, 1000)  // in the tail
	read(0, 30)                           // a local header, and what follows it
	read(30, 1000)                        // in memory
	read(readahead.Least, 10)             // goes on: twice as much
	read(3*readahead.Least-5, 10)         // goes on from memory
	read(5<<20, 2*readahead.Most/3)       // large
	read(size-readahead.TailBytes-10, 20) // up to the tail, and no further
	want := []string{
		"bytes=-262144",
		"bytes=0-65535",
		"bytes=65536-196607",
		"bytes=196608-458751",
		"bytes=5242880-8039081",
		"bytes=10223606-10223615",
	}
	if diff := cmp.Diff(want, s.requests()); diff != "" {
		t.Error(diff)
	}
	p := make([]byte, 100)
	if n, err := r.ReadAt(p, size-50); n != 50 || err != io.EOF { //nolint:errorlint // io.ReaderAt's end is bare
		t.Errorf("across the end: got %d, %v", n, err)
	}
	if n, err := r.ReadAt(p, size+50); n != 0 || err != io.EOF { //nolint:errorlint // the same
		t.Errorf("past the end: got %d, %v", n, err)
	}
	if _, err := r.ReadAt(p, -1); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("before the start: got %v", err)
	}
}

// TestReaderAtHoldsLittle: whatever is read, in whatever order.
func TestReaderAtHoldsLittle(t *testing.T) {
	const size = 64 << 20
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", zeroTime, io.NewSectionReader(zeroAt{}, 0, size))
	})
	r := readerAt(t, s)
	if n, err := io.Copy(io.Discard, io.NewSectionReader(r, 0, size)); err != nil || n != size {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	if held := r.cache.Kept(); held > readahead.MostKept+readahead.TailBytes {
		t.Errorf("holds %d MiB", held>>20)
	}
	if n := len(s.requests()); n > 25 {
		t.Errorf("%d requests for 64 MiB in order", n)
	}
}

// TestReaderAtOpensAZip in few requests, whatever its size.
func TestReaderAtOpensAZip(t *testing.T) {
	for members, most := range map[int]int{10: 1, 1000: 1, 10_000: 5} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for i := range members {
			f, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("model/%050d", i)})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.Write(content(100))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s := serve(t, tagged(b.Bytes(), `"1"`))
		r := readerAt(t, s)
		z, err := zip.NewReader(r, r.Size())
		if err != nil || len(z.File) != members {
			t.Fatal(err)
		}
		if n := len(s.requests()); n > most {
			t.Errorf("%d members: %d requests to open, want at most %d", members, n, most)
		}
	}
}

func TestReaderAtOpenRange(t *testing.T) {
	data := content(600_000)
	s := serve(t, tagged(data, `"1"`))
	r := readerAt(t, s)
	b, err := r.OpenRange(t.Context(), 100, 500_000)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, data[100:500_100]) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if n := len(s.requests()); n != 2 {
		t.Errorf("got %d requests, want 2", n)
	}
}

// TestReaderAtServers: those that don't know ranges from the end, and those
// that know none.
func TestReaderAtServers(t *testing.T) {
	data := content(600_000)
	noSuffix := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Range"), "bytes=-") {
				answer(w, r)
				return
			}
			tagged(data, `"1"`)(w, r)
		}
	}
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		err  error
	}{
		{"everything for a suffix", noSuffix(noRanges(data)), nil},
		{"400 for a suffix", noSuffix(status(400)), nil},
		{"416 for a suffix", noSuffix(status(416)), nil},
		{"501 for a suffix", noSuffix(status(501)), nil},
		{"its beginning for a suffix", noSuffix(partial(206, "bytes 0-299999/600000", data[:300_000])), nil},
		{"everything as a part", noSuffix(partial(206, "bytes 0-599999/600000", data)), nil},
		{"no ranges at all", noRanges(data), ranges.ErrNone},
		{"no ranges at all, and no size", chunked(data), ranges.ErrNone},
		{"missing", status(404), errMissing},
		{"cut tail", func() http.HandlerFunc {
			first := true
			return func(w http.ResponseWriter, r *http.Request) {
				if !first {
					tagged(data, `"1"`)(w, r)
					return
				}
				first = false
				w.Header().Set("Content-Range", "bytes 337856-599999/600000")
				w.Header().Set("Content-Length", "262144")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(data[337856:400_000])
				panic(http.ErrAbortHandler)
			}
		}(), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.h)
			r, err := NewReaderAt(t.Context(), s.getter(), get(s.URL))
			if c.err != nil {
				var code *StatusError
				missing := errors.As(err, &code) && code.Code == http.StatusNotFound
				if !errors.Is(err, c.err) && !(missing && c.err == errMissing) { //nolint:errorlint,staticcheck // the table's own; it reads so
					t.Errorf("got %v, want %v", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}

// TestReaderAtNoticesChange between two requests, by whatever the server says.
func TestReaderAtNoticesChange(t *testing.T) {
	data := content(600_000)
	for name, then := range map[string]http.HandlerFunc{
		"ETag":            tagged(data, `"2"`),
		"size":            tagged(content(600_001), `"1"`),
		"no ranges then":  noRanges(data),
		"no content then": status(404),
	} {
		s := serve(t, tagged(data, `"1"`), then)
		r := readerAt(t, s)
		_, err := r.ReadAt(make([]byte, 10), 0)
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
		if (name == "ETag" || name == "size") && !errors.Is(err, ErrChanged) {
			t.Errorf("%s: got %v, want ErrChanged", name, err)
		}
	}
}

func TestReaderAtAtOnce(t *testing.T) {
	data := content(2 << 20)
	s := serve(t, tagged(data, `"1"`))
	r := readerAt(t, s)
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			off := int64(i) << 18
			got, err := io.ReadAll(io.NewSectionReader(r, off, 1<<18))
			if err != nil || !bytes.Equal(got, data[off:off+1<<18]) {
				t.Errorf("from %d: got %d bytes, %v", off, len(got), err)
			}
		})
	}
	readers.Wait()
	r.Close()
	if _, err := r.ReadAt(make([]byte, 1<<20), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

// errMissing stands for a 404.
var errMissing = errors.New("missing")

type zeroAt struct{}

func (zeroAt) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
