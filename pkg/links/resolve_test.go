package links_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// places is a Fetcher whose hosts are functions: url → content, or an error.
type places struct {
	mu    sync.Mutex
	asked []string // "size URL" or "URL off n"
	serve map[string]func(off, n int64) (io.Reader, error)
	sizes map[string]int64
}

func (p *places) Size(_ context.Context, link links.Link) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, "size "+link.URL)
	size, ok := p.sizes[link.URL]
	if !ok {
		return -1, errors.New("no such host")
	}
	return size, nil
}

func (p *places) Open(ctx context.Context, link links.Link, off, n int64) (io.ReadCloser, error) {
	p.mu.Lock()
	p.asked = append(p.asked, fmt.Sprintf("%s %d %d", link.URL, off, n))
	serve := p.serve[link.URL]
	p.mu.Unlock()
	if serve == nil {
		return nil, errors.New("no such host")
	}
	r, err := serve(off, n)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(r), ctx.Err()
}

// gives serves b.
func gives(b []byte) func(off, n int64) (io.Reader, error) {
	return func(off, n int64) (io.Reader, error) {
		if n < 0 {
			n = int64(len(b)) - off
		}
		return io.NewSectionReader(bytes.NewReader(b), off, n), nil
	}
}

var errCut = errors.New("connection reset")

// cuts serves the first n bytes of b, wherever a read begins, and then an error.
func cuts(b []byte, n int64) func(off, n int64) (io.Reader, error) {
	return func(off, _ int64) (io.Reader, error) {
		return cartontest.FailAfter(bytes.NewReader(b[min(off, n):]), max(n-off, 0), errCut), nil
	}
}

// thin is a carton whose model/a has these URLs.
func thin(data []byte, urls ...string) *cartontest.Source {
	return cartontest.New(files(data), map[string]string{"model/link": "a"}, at(data, urls))
}

// ranged is the same, whose other members are read by ranges.
func ranged(data []byte, urls ...string) *cartontest.Source {
	return cartontest.New(files(data), nil, at(data, urls), cartontest.WithRanges(nil))
}

func files(data []byte) map[string][]byte {
	return map[string][]byte{"model/a": data, "model/b": []byte("here")}
}

func at(data []byte, urls []string) cartontest.Option {
	return cartontest.WithLinks(&carton.Links{URLs: map[string][]string{sum(data): urls}})
}

func readAll(src carton.Source, path string) ([]byte, error) {
	r, err := src.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func TestResolveReadsLinkedMembers(t *testing.T) {
	data := numbers(100_000)
	p := &places{serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": gives(data)}}
	src := links.Resolve(thin(data, "https://a/1"), p)
	for path, want := range map[string][]byte{"model/a": data, "model/link": data, "model/b": []byte("here")} {
		got, err := readAll(src, path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %d bytes, %v", path, len(got), err)
		}
	}
	if _, err := readAll(src, "model/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	if got, err := readAll(src, carton.ManifestName); err != nil || !bytes.Equal(got, src.Manifest().Bytes()) {
		t.Errorf("MANIFEST: got %q, %v", got, err)
	}
	r, err := src.OpenRange(t.Context(), "model/link", 10, 20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data[10:30]) {
		t.Errorf("range: got %d bytes, %v", len(got), err)
	}
}

func TestResolveWithoutLinksIsTheSource(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a": []byte("a")}, nil)
	if got := links.Resolve(src, &places{}); got != carton.Source(src) {
		t.Errorf("got %T, want the source itself", got)
	}
}

// TestResolveURLs: which URLs are asked, in which order and where, and what
// comes of it.
func TestResolveURLs(t *testing.T) {
	data := numbers(1000)
	bad := bytes.Repeat([]byte("x"), 1000)
	type serve = map[string]func(off, n int64) (io.Reader, error)
	type read struct {
		asked     []string
		kind      error  // nil: the content is right
		want      string // in the error's text
		temporary bool
	}
	for _, c := range []struct {
		name  string
		urls  []string
		serve serve
		reads []read
	}{
		{
			"the first will do",
			[]string{"https://a/1", "https://b/2"},
			serve{"https://a/1": gives(data)},
			[]read{{asked: []string{"https://a/1 0 -1"}}},
		},
		{
			"a host that is down goes to the back",
			[]string{"https://a/1", "https://b/2"},
			serve{"https://b/2": gives(data)},
			[]read{
				{asked: []string{"https://a/1 0 -1", "https://b/2 0 -1"}},
				{asked: []string{"https://b/2 0 -1"}},
			},
		},
		{
			"what is missing comes from the next",
			[]string{"https://a/1", "https://b/2", "https://c/3"},
			serve{"https://a/1": cuts(data, 400), "https://b/2": cuts(data, 700), "https://c/3": gives(data)},
			[]read{
				{asked: []string{"https://a/1 0 -1", "https://b/2 400 -1", "https://c/3 700 -1"}},
				{asked: []string{"https://c/3 0 -1"}},
			},
		},
		{
			"nobody",
			[]string{"https://a/1", "https://u:p@b/2?token=p", "https://c/3", "https://d/4", "https://e/5"},
			serve{"https://a/1": cuts(data, 400)},
			[]read{{
				asked: []string{"https://a/1 0 -1", "https://u:p@b/2?token=p 400 -1", "https://c/3 400 -1", "https://d/4 400 -1", "https://e/5 400 -1"},
				kind:  carton.ErrLink,
				want:  "model/a: no URL of LINKS gives it: a: connection reset; b: no such host; c: no such host; and 2 more",
			}},
		},
		{
			"wrong content is not asked for again",
			[]string{"https://a/1", "https://b/2"},
			serve{"https://a/1": gives(bad), "https://b/2": gives(data)},
			[]read{
				{asked: []string{"https://a/1 0 -1"}, kind: carton.ErrChecksum, want: "model/a: content does not match its hash: a: got sha256 " + sum(bad), temporary: true},
				{asked: []string{"https://b/2 0 -1"}},
			},
		},
		{
			"short and empty content is wrong",
			[]string{"https://a/1", "https://b/2", "https://c/3"},
			serve{"https://a/1": gives(data[:10]), "https://b/2": gives(nil), "https://c/3": gives(data)},
			[]read{
				{asked: []string{"https://a/1 0 -1"}, kind: carton.ErrChecksum, temporary: true},
				{asked: []string{"https://b/2 0 -1"}, kind: carton.ErrChecksum, temporary: true},
				{asked: []string{"https://c/3 0 -1"}},
			},
		},
		{
			"only wrong content",
			[]string{"https://a/1"},
			serve{"https://a/1": gives(bad)},
			[]read{
				{asked: []string{"https://a/1 0 -1"}, kind: carton.ErrChecksum},
				{kind: carton.ErrChecksum, want: "model/a: no URL of LINKS gives it: a: got sha256 " + sum(bad)},
			},
		},
		{
			// Whose bytes were wrong is not known, so each must now give the whole.
			"wrong content of two, the first to blame",
			[]string{"https://a/1", "https://b/2"},
			serve{"https://a/1": cuts(bad, 400), "https://b/2": gives(data)},
			[]read{
				{asked: []string{"https://a/1 0 -1", "https://b/2 400 -1"}, kind: carton.ErrChecksum, temporary: true},
				{asked: []string{"https://b/2 0 -1"}},
			},
		},
		{
			"wrong content of two, the second to blame",
			[]string{"https://a/1", "https://b/2"},
			serve{"https://a/1": once(cuts(data, 400), gives(data)), "https://b/2": gives(bad)},
			[]read{
				{asked: []string{"https://a/1 0 -1", "https://b/2 400 -1"}, kind: carton.ErrChecksum, temporary: true},
				{asked: []string{"https://b/2 0 -1"}, kind: carton.ErrChecksum, temporary: true},
				{asked: []string{"https://a/1 0 -1"}},
			},
		},
		{
			"wrong content of two, and no longer put together",
			[]string{"https://a/1", "https://b/2"},
			serve{"https://a/1": cuts(data, 400), "https://b/2": once(gives(bad), cuts(data, 500))},
			[]read{
				{asked: []string{"https://a/1 0 -1", "https://b/2 400 -1"}, kind: carton.ErrChecksum, temporary: true},
				{asked: []string{"https://b/2 0 -1"}, kind: carton.ErrLink, temporary: true},
				{asked: []string{"https://a/1 0 -1"}, kind: carton.ErrLink, temporary: true},
			},
		},
		{
			"one URL twice",
			[]string{"https://a/1", "https://a/1"},
			serve{"https://a/1": gives(bad)},
			[]read{{asked: []string{"https://a/1 0 -1"}, kind: carton.ErrChecksum}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &places{serve: c.serve}
			src := links.Resolve(thin(data, c.urls...), p)
			for i, want := range c.reads {
				p.asked = nil
				got, err := readAll(src, "model/a")
				if diff := cmp.Diff(want.asked, p.asked); diff != "" {
					t.Errorf("read %d: asked\n%s", i, diff)
				}
				if want.kind == nil && (err != nil || !bytes.Equal(got, data)) {
					t.Errorf("read %d: got %d bytes, %v", i, len(got), err)
				}
				if want.kind != nil && (!errors.Is(err, want.kind) || !strings.HasPrefix(err.Error(), want.want)) {
					t.Errorf("read %d: got %v, want %v: %s", i, err, want.kind, want.want)
				}
				if temporary(err) != want.temporary {
					t.Errorf("read %d: %v is temporary: %v, want %v", i, err, temporary(err), want.temporary)
				}
			}
		})
	}
}

// once serves by first, and after that by then.
func once(first, then func(off, n int64) (io.Reader, error)) func(off, n int64) (io.Reader, error) {
	var used atomic.Bool
	return func(off, n int64) (io.Reader, error) {
		if used.CompareAndSwap(false, true) {
			return first(off, n)
		}
		return then(off, n)
	}
}

func TestResolveRanges(t *testing.T) {
	data := numbers(1000)
	p := &places{serve: map[string]func(off, n int64) (io.Reader, error){
		"https://a/1": cuts(data, 400), "https://b/2": gives(data),
	}}
	src := links.Resolve(thin(data, "https://a/1", "https://b/2"), p)
	for _, c := range []struct {
		off, n   int64
		from, to int
		err      error
		asked    []string
	}{
		{300, 200, 300, 500, nil, []string{"https://a/1 300 200", "https://b/2 400 100"}},
		{500, -1, 500, 1000, nil, []string{"https://b/2 500 -1"}},
		{990, 20, 990, 1000, io.ErrUnexpectedEOF, []string{"https://b/2 990 20"}},
	} {
		p.asked = nil
		r, err := src.OpenRange(t.Context(), "model/a", c.off, c.n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		r.Close()
		if err != c.err || !bytes.Equal(got, data[c.from:c.to]) { //nolint:errorlint // the end comes bare
			t.Errorf("%d bytes from %d: got %d bytes, %v", c.n, c.off, len(got), err)
		}
		if diff := cmp.Diff(c.asked, p.asked); diff != "" {
			t.Errorf("%d bytes from %d: asked\n%s", c.n, c.off, diff)
		}
	}
	if _, err := src.OpenRange(t.Context(), "model/a", -1, 1); !errors.Is(err, carton.ErrFormat) {
		t.Errorf("offset -1: got %v", err)
	}
}

// TestResolveOverHTTP: the whole way, from a host that claims an encoding and
// sends none to one that serves the content compressed.
func TestResolveOverHTTP(t *testing.T) {
	data := numbers(200_000)
	liar := newHost(t, encoded("gzip", data))
	wrong := newHost(t, serveContent(numbers(100)))
	right := newHost(t, encoded("zstd", encode(t, "zstd", data)))
	f := allowing(links.Options{}, liar, wrong, right)
	src := links.Resolve(thin(data, liar.URL, "http://169.254.169.254/x", wrong.URL, right.URL), f)
	if _, err := readAll(src, "model/a"); !errors.Is(err, carton.ErrChecksum) || !temporary(err) {
		t.Errorf("got %v, want a wrong content that another URL may mend", err)
	}
	got, err := readAll(src, "model/a")
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if n := wrong.requests.Load(); n != 1 {
		t.Errorf("the host of the wrong content was asked %d times, want once", n)
	}
}
