package httprange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/google/go-cmp/cmp"
)

// whole honours ranges as net/http does.
func whole(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// noRanges answers every request with everything.
func noRanges(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

// chunked does so without saying the size.
func chunked(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(data)
	}
}

// partial answers with any status, Content-Range and bytes.
func partial(status int, contentRange string, data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", contentRange)
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		w.WriteHeader(status)
		_, _ = w.Write(data)
	}
}

func TestRanges(t *testing.T) {
	data := content(100_000)
	for name, h := range map[string]http.HandlerFunc{"ranges": whole(data), "no ranges": noRanges(data), "chunked": chunked(data)} {
		s := serve(t, h)
		for _, c := range []struct {
			off, n, size, from, to int64
			err                    error
		}{
			{0, -1, -1, 0, 100_000, nil},
			{0, -1, 100_000, 0, 100_000, nil},
			{0, 10, -1, 0, 10, nil},
			{0, 10, 100_000, 0, 10, nil},
			{0, 100_000, 100_000, 0, 100_000, nil},
			{99_990, -1, -1, 99_990, 100_000, nil},
			{5, 10, -1, 5, 15, nil},
			{5, 10, 100_000, 5, 15, nil},
			{100_000, -1, -1, 0, 0, nil},
			{100_000, -1, 100_000, 0, 0, nil},
			{50_000, 0, -1, 0, 0, nil},
			{99_990, 11, -1, 99_990, 100_000, io.ErrUnexpectedEOF},
			{99_990, 11, 100_000, 99_990, 100_000, io.ErrUnexpectedEOF},
			{0, 200_000, -1, 0, 100_000, io.ErrUnexpectedEOF},
			{100_001, -1, -1, 0, 0, io.ErrUnexpectedEOF},
			{100_001, 5, 100_000, 0, 0, io.ErrUnexpectedEOF},
			{200_000, 5, -1, 0, 0, io.ErrUnexpectedEOF},
		} {
			got, err := read(t, s.getter(), s.URL, c.off, c.n, c.size)
			if err != c.err || !bytes.Equal(got, data[c.from:c.to]) { //nolint:errorlint // the end comes bare
				t.Errorf("%s: %d bytes of %d from %d: got %d bytes, %v", name, c.n, c.size, c.off, len(got), err)
			}
		}
	}
}

func TestRequests(t *testing.T) {
	data := content(100)
	for _, c := range []struct {
		off, n, size int64
		want         []string
	}{
		{0, -1, -1, []string{"GET"}},
		{0, -1, 100, []string{"GET"}},
		{0, 100, 100, []string{"GET"}},
		{0, 10, 100, []string{"bytes=0-9"}},
		{10, 10, -1, []string{"bytes=10-19"}},
		{10, -1, 100, []string{"bytes=10-99"}},
		{10, -1, -1, []string{"bytes=10-"}},
		{90, 20, 100, []string{"bytes=90-99"}},
		{100, -1, 100, nil},
		{10, 0, -1, nil},
	} {
		s := serve(t, whole(data))
		_, _ = read(t, s.getter(), s.URL, c.off, c.n, c.size)
		if diff := cmp.Diff(c.want, s.requests()); diff != "" {
			t.Errorf("%d bytes of %d from %d:\n%s", c.n, c.size, c.off, diff)
		}
	}
	s := serve(t, whole(data))
	for _, c := range [][2]int64{{-1, 5}, {1 << 62, 1 << 62}} {
		if _, err := read(t, s.getter(), s.URL, c[0], c[1], -1); !errors.Is(err, ErrAnswer) || s.requests() != nil {
			t.Errorf("%d bytes from %d: got %v", c[1], c[0], err)
		}
	}
}

// TestAnswers: what a server may answer to a request for bytes 10 to 19 of 100,
// and what is made of it.
func TestAnswers(t *testing.T) {
	data := content(100)
	again := []string{"bytes=10-19", "GET"}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		then   http.HandlerFunc // nil: the same
		asked  []string
		err    string // "" where the bytes arrive
	}{
		{"what was asked for", partial(206, "bytes 10-19/100", data[10:20]), nil, []string{"bytes=10-19"}, ""},
		{"in capitals", partial(206, "Bytes 10-19/100", data[10:20]), nil, []string{"bytes=10-19"}, ""},
		{"everything", noRanges(data), nil, []string{"bytes=10-19"}, ""},
		{"everything as a part", partial(206, "bytes 0-99/100", data), nil, []string{"bytes=10-19"}, ""},
		{"a part around it", partial(206, "bytes 5-49/100", data[5:50]), nil, []string{"bytes=10-19"}, ""},
		{"its beginning", partial(206, "bytes 10-14/100", data[10:15]), whole(data), []string{"bytes=10-19", "bytes=15-19"}, ""},
		{"a later part", partial(206, "bytes 11-20/100", data[11:21]), noRanges(data), again, ""},
		{"an earlier part", partial(206, "bytes 0-9/100", data[:10]), noRanges(data), again, ""},
		{"no Content-Range", partial(206, "", data), noRanges(data), again, ""},
		{"no size", partial(206, "bytes 10-19/*", data[10:20]), noRanges(data), again, ""},
		{"other units", partial(206, "lines 10-19/100", data[10:20]), noRanges(data), again, ""},
		{"nonsense", partial(206, "bytes 19-10/100", data[10:20]), noRanges(data), again, ""},
		{"past its own size", partial(206, "bytes 10-19/15", data[10:20]), noRanges(data), again, ""},
		{"longer than it says", partial(206, "bytes 10-19/100", data[10:30]), noRanges(data), again, ""},
		{"shorter than it says", partial(206, "bytes 10-19/100", data[10:15]), noRanges(data), again, ""},
		{"416 for a range that exists", partial(416, "bytes */100", nil), noRanges(data), again, ""},
		{"416 without a size", partial(416, "", nil), noRanges(data), again, ""},
		{"wrong parts and nothing else", partial(206, "bytes 11-20/100", data[11:21]), nil, again, "got status 206, want 200"},
		{"another size", partial(206, "bytes 10-19/101", data[10:20]), nil, []string{"bytes=10-19"}, "content has 101 bytes, want 100"},
		{"another size of everything", noRanges(data[:50]), nil, []string{"bytes=10-19"}, "content has 50 bytes, want 100"},
		{"416 and another size", partial(416, "bytes */5", nil), nil, []string{"bytes=10-19"}, "content has 5 bytes, want 100"},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, nil, []string{"bytes=10-19"}, "got status 204, want 200"},
		{"a redirect to nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, nil, []string{"bytes=10-19"}, "got status 304, want 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.then == nil {
				c.then = c.answer
			}
			s := serve(t, c.answer, c.then)
			got, err := read(t, s.getter(), s.URL, 10, 10, 100)
			if diff := cmp.Diff(c.asked, s.requests()); diff != "" {
				t.Error(diff)
			}
			if c.err == "" && (err != nil || !bytes.Equal(got, data[10:20])) {
				t.Errorf("got %v, %v", got, err)
			}
			if c.err != "" && (err == nil || !strings.HasSuffix(err.Error(), c.err) || !errors.Is(err, ErrAnswer)) {
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}

// TestWholeAnswers: what may be answered where everything was asked for.
func TestWholeAnswers(t *testing.T) {
	data := content(100)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		size   int64
		err    string
	}{
		{"everything", noRanges(data), 100, ""},
		{"everything in chunks", chunked(data), 100, ""},
		{"more", noRanges(content(101)), 100, "content has 101 bytes, want 100"},
		{"more in chunks", chunked(content(101)), 100, "content goes on after 100 bytes"},
		{"less", noRanges(data[:99]), 100, "content has 99 bytes, want 100"},
		{"less in chunks", chunked(data[:99]), 100, "gave up after 8 attempts: response ended"},
		{"a part", partial(206, "bytes 0-99/100", data), 100, "got status 206, want 200"},
		{"416", partial(416, "bytes */100", nil), 100, "416 Requested Range Not Satisfiable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			got, err := read(t, s.getter(), s.URL, 0, -1, c.size)
			if c.err == "" && (err != nil || !bytes.Equal(got, data)) {
				t.Errorf("got %v, %v", got, err)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %s", err, c.err)
			}
		})
	}
}

func TestNeedRanges(t *testing.T) {
	data := content(100)
	for name, h := range map[string]http.HandlerFunc{
		"everything":    noRanges(data),
		"another range": partial(206, "bytes 0-9/100", data[:10]),
	} {
		s := serve(t, h)
		g := s.getter()
		g.NeedRanges = true
		if _, err := read(t, g, s.URL, 10, 10, -1); !errors.Is(err, ranges.ErrNone) || len(s.requests()) != 1 {
			t.Errorf("%s: got %v after %q", name, err, s.requests())
		}
	}
}

// TestPinned: content that changes is an error where nobody has its hash, and
// only there.
func TestPinned(t *testing.T) {
	data := content(100)
	with := func(h http.HandlerFunc, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			h(w, r)
		}
	}
	begun := partial(206, "bytes 10-14/100", data[10:15])
	rest := partial(206, "bytes 15-19/100", data[15:20])
	for _, c := range []struct {
		name        string
		first, then http.HandlerFunc
		pinned      bool   // whether that is an error where the content is pinned
		ifRange     string // what is sent with the second request
	}{
		{"same ETag", with(begun, "ETag", `"1"`), with(rest, "ETag", `"1"`), false, `"1"`},
		{"other ETag", with(begun, "ETag", `"1"`), with(rest, "ETag", `"2"`), true, `"1"`},
		{"weak ETag", with(begun, "ETag", `W/"1"`), with(rest, "ETag", `W/"1"`), false, ""},
		{"other weak ETag", with(begun, "ETag", `W/"1"`), with(rest, "ETag", `W/"2"`), true, ""},
		{"ETag that became weak", with(begun, "ETag", `"1"`), with(rest, "ETag", `W/"1"`), false, `"1"`},
		{"ETag gone", with(begun, "ETag", `"1"`), rest, false, `"1"`},
		{"other date", with(begun, "Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"), with(rest, "Last-Modified", "Mon, 01 Jan 2024 00:00:01 GMT"), true, ""},
		{"everything anew", with(begun, "ETag", `"1"`), with(noRanges(data), "ETag", `"2"`), true, `"1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent atomic.Value
			then := func(w http.ResponseWriter, r *http.Request) {
				sent.Store(r.Header.Get("If-Range"))
				c.then(w, r)
			}
			s := serve(t, c.first, then)
			g := s.getter()
			if got, err := read(t, g, s.URL, 10, 10, 100); err != nil || !bytes.Equal(got, data[10:20]) || sent.Load() != "" {
				t.Errorf("not pinned: got %v, %v, If-Range %s", got, err, sent.Load())
			}
			s = serve(t, c.first, then)
			g = s.getter()
			g.Pinned = true
			_, err := read(t, g, s.URL, 10, 10, 100)
			if errors.Is(err, ErrChanged) != c.pinned || (err != nil) != c.pinned || sent.Load() != c.ifRange {
				t.Errorf("pinned: got %v, If-Range %s", err, sent.Load())
			}
		})
	}
	s := serve(t, begun, partial(206, "bytes 15-19/101", data[15:20]))
	g := s.getter()
	g.Pinned = true
	if _, err := read(t, g, s.URL, 10, 10, -1); !errors.Is(err, ErrChanged) {
		t.Errorf("another size: got %v", err)
	}
	s = serve(t, begun, with(rest, "Content-Encoding", "gzip"))
	if _, err := read(t, s.getter(), s.URL, 10, 10, 100); !errors.Is(err, ErrChanged) {
		t.Errorf("another encoding: got %v, which can't be put together", err)
	}
}

func TestBodyTellsWhatItLearnt(t *testing.T) {
	data := content(100)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Test", "yes")
		whole(data)(w, r)
	})
	b, err := s.getter().Open(t.Context(), get(s.URL), 10, 5, -1)
	if err != nil {
		t.Fatal(err)
	}
	if b.Size() != 100 || b.Header().Get("X-Test") != "yes" {
		t.Errorf("got size %d, headers %v", b.Size(), b.Header())
	}
	if n, err := b.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: got %d, %v", n, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

// TestConnectionsAreUsedAgain: of responses that were read to their end.
func TestConnectionsAreUsedAgain(t *testing.T) {
	data := content(100_000)
	var mu sync.Mutex
	from := map[string]bool{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		whole(data)(w, r)
	})
	for i := range int64(10) {
		if _, err := read(t, s.getter(), s.URL, 10*i, 10, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, s.getter(), s.URL, 0, -1, -1); err != nil {
			t.Fatal(err)
		}
	}
	if len(from) > 3 { // a slow machine gives one back too late now and then
		t.Errorf("got %d connections for 20 reads, want 1", len(from))
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-99/100", "bytes */100", "bytes 0-0/*", "bytes 5-1/2", "bytes -1-1/2", "", "bytes 9223372036854775807-9223372036854775807/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseContentRange(s)
		if err != nil {
			return
		}
		first := "*"
		if p.first >= 0 {
			first = fmt.Sprintf("%d-%d", p.first, p.last)
		}
		size := "*"
		if p.size >= 0 {
			size = strconv.FormatInt(p.size, 10)
		}
		again, err := parseContentRange("bytes " + first + "/" + size)
		if err != nil || again != p || p.last < p.first || p.size >= 0 && p.last >= p.size {
			t.Errorf("%q: got %+v, then %+v, %v", s, p, again, err)
		}
	})
}
