package httprange

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStat(t *testing.T) {
	data := content(100)
	head := func(onHead, onGet http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				onHead(w, r)
				return
			}
			onGet(w, r)
		}
	}
	for _, c := range []struct {
		name  string
		h     http.HandlerFunc
		want  int64
		asked []string
	}{
		{"HEAD", whole(data), 100, []string{"HEAD"}},
		{"no HEAD", head(status(405), whole(data)), 100, []string{"HEAD", "bytes=0-0"}},
		{"HEAD is unauthorized", head(status(401), whole(data)), 100, []string{"HEAD", "bytes=0-0"}},
		{"HEAD fails", head(status(500), whole(data)), 100, []string{"HEAD", "HEAD", "bytes=0-0"}},
		{"HEAD says nothing", head(status(200), whole(data)), 100, []string{"HEAD", "bytes=0-0"}},
		{"no ranges", head(status(405), noRanges(data)), 100, []string{"HEAD", "bytes=0-0"}},
		{"empty", whole(nil), 0, []string{"HEAD", "bytes=0-0"}},
		{"empty with 416", head(status(405), partial(416, "bytes */0", nil)), 0, []string{"HEAD", "bytes=0-0"}},
		{"nobody says", head(status(405), chunked(data)), -1, []string{"HEAD", "bytes=0-0"}},
		{"encoded", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write(data)
		}, -1, []string{"HEAD", "bytes=0-0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.h)
			got, err := s.getter().Stat(t.Context(), get(s.URL))
			if err != nil || got != c.want {
				t.Errorf("got %d, %v, want %d", got, err, c.want)
			}
			if diff := cmp.Diff(c.asked, s.requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
	s := serve(t, status(404))
	g := s.getter()
	mine := errors.New("no such blob")
	g.CheckResponse = func(*http.Response) error { return mine }
	if got, err := g.Stat(t.Context(), get(s.URL)); got != -1 || !errors.Is(err, mine) {
		t.Errorf("missing: got %d, %v", got, err)
	}
	g = &Getter{Do: client(t, ClientOptions{}).Do, Policy: fast()}
	if _, err := g.Stat(t.Context(), get(s.URL)); !errors.Is(err, ErrNotAllowed) || len(s.requests()) != 2 {
		t.Errorf("not allowed: got %v after %q", err, s.requests())
	}
}
