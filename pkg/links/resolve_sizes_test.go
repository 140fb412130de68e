package links_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// sized lists a source's members and asks for all sizes.
func sized(ctx context.Context, src carton.Source) ([]carton.Member, error) {
	members, err := src.Members(ctx)
	if err == nil {
		err = src.Sizes(ctx, members)
	}
	return members, err
}

func TestResolveMembersSizes(t *testing.T) {
	files, urls, sizes := map[string][]byte{}, map[string][]string{}, map[string]int64{}
	for i := range 40 {
		b := numbers(i + 1)
		files[fmt.Sprintf("model/%02d", i)] = b
		urls[sum(b)] = []string{fmt.Sprintf("https://down/%d", i), fmt.Sprintf("https://up/%d", i)}
		sizes[fmt.Sprintf("https://up/%d", i)] = int64(i + 1)
	}
	delete(sizes, "https://up/7")           // nobody knows
	sizes["https://down/8"] = -1            // says that it doesn't
	files["model/same"] = files["model/00"] // asked for once
	p := &places{sizes: sizes}
	src := links.Resolve(cartontest.New(files, map[string]string{"model/link": "03"},
		cartontest.WithLinks(&carton.Links{URLs: urls})), p)
	if _, err := src.Members(t.Context()); err != nil || len(p.asked) > 0 {
		t.Errorf("a listing: got %v and asked %q, want no host asked", err, p.asked)
	}
	for range 2 {
		members, err := sized(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			want := int64(len(files[m.Path]))
			switch m.Path {
			case "carton.toml":
				continue
			case "model/07":
				want = -1
			case "model/link":
				want = 4
			}
			if m.Size != want || m.Place != carton.PlaceLinked {
				t.Errorf("%s: got size %d, %v, want %d, linked", m.Path, m.Size, m.Place, want)
			}
		}
	}
	slices.Sort(p.asked)
	if n := len(p.asked); n != 80 || len(slices.Compact(p.asked)) != 80 {
		t.Errorf("asked %d times, want 80: each URL once", n)
	}
}

// TestResolveSizesAtOnce: at most eight hosts are asked at the same time.
func TestResolveSizesAtOnce(t *testing.T) {
	files, urls := map[string][]byte{}, map[string][]string{}
	for i := range 30 {
		b := numbers(i + 1)
		files[fmt.Sprintf("model/%02d", i)] = b
		urls[sum(b)] = []string{"https://a/"}
	}
	g := &gate{enough: make(chan struct{})}
	src := links.Resolve(cartontest.New(files, nil, cartontest.WithLinks(&carton.Links{URLs: urls})), g)
	if _, err := sized(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if g.most != 8 {
		t.Errorf("asked %d at once, want 8", g.most)
	}
}

func TestResolveInterrupted(t *testing.T) {
	data := numbers(1000)
	ctx, cancel := context.WithCancel(t.Context())
	p := &places{
		serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": func(int64, int64) (io.Reader, error) {
			cancel()
			return nil, errCut
		}, "https://b/2": gives(data)},
		sizes: map[string]int64{"https://a/1": 5},
	}
	src := links.Resolve(thin(data, "https://a/1", "https://b/2"), p)
	if _, err := src.Open(ctx, "model/a"); !errors.Is(err, context.Canceled) || len(p.asked) != 1 {
		t.Errorf("got %v after asking %q", err, p.asked)
	}
	if _, err := sized(ctx, src); !errors.Is(err, context.Canceled) {
		t.Errorf("members: got %v", err)
	}
	members, err := sized(t.Context(), src)
	if i := slices.IndexFunc(members, func(m carton.Member) bool { return m.Path == "model/a" }); err != nil || members[i].Size != 5 {
		t.Errorf("after the interruption: got %+v, %v, want the size asked anew", members, err)
	}
}

// TestResolveCloseEndsReaders: a closed carton reads nothing more.
func TestResolveCloseEndsReaders(t *testing.T) {
	data := numbers(1000)
	p := &places{serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": cuts(data, 10)}}
	src := links.Resolve(thin(data, "https://a/1"), p)
	r, err := src.Open(t.Context(), "model/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an interrupted read", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := src.Open(t.Context(), "model/a"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// gate holds its callers until eight are there.
type gate struct {
	places
	now, most int
	enough    chan struct{}
}

func (g *gate) Size(context.Context, links.Link) (int64, error) {
	g.mu.Lock()
	g.now++
	if g.most = max(g.most, g.now); g.now == 8 {
		select {
		case <-g.enough:
		default:
			close(g.enough)
		}
	}
	g.mu.Unlock()
	<-g.enough
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
	return 1, nil
}
