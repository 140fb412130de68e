package layout_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
)

// openSources counts what is open at once.
type openSources struct {
	mu         sync.Mutex
	open, most int
	two        chan struct{} // closed when two are open; the first waits for it
}

func (s *openSources) of(b []byte) io.ReadCloser {
	s.mu.Lock()
	s.open++
	if s.most = max(s.most, s.open); s.most == 2 && s.open == 2 {
		select {
		case <-s.two:
		default:
			close(s.two)
		}
	}
	s.mu.Unlock()
	select {
	case <-s.two:
	case <-time.After(10 * time.Second):
	}
	return &onClose{Reader: bytes.NewReader(b), close: func() { s.mu.Lock(); s.open--; s.mu.Unlock() }}
}

type onClose struct {
	io.Reader
	close func()
}

func (c *onClose) Close() error { c.close(); return nil }

// Layers that are read by ranges, those that are streams and those that are read once
// more to be vouched for: no more are open at once than were asked for.
func TestPushBoundsItsOpenSources(t *testing.T) {
	for name, ranged := range map[string]func(i int) bool{
		"by ranges": func(int) bool { return true },
		"streams":   func(int) bool { return false },
		"both":      func(i int) bool { return i%2 == 0 },
	} {
		sources := openSources{two: make(chan struct{})}
		spec := layout.ArtifactSpec{Config: configLayer()}
		for i := range 6 {
			b, desc := storetest.Blob(byte(i), 9<<20)
			l := layout.Layer{Descriptor: desc, Open: func(_ context.Context, off int64) (io.ReadCloser, error) { return sources.of(b[off:]), nil }}
			if ranged(i) {
				l.OpenRange = func(_ context.Context, off, n int64) (io.ReadCloser, error) { return sources.of(b[off : off+n]), nil }
			}
			l.Vouch = func(context.Context, layout.Fetcher, func(int64)) error {
				r := sources.of(b)
				defer r.Close()
				_, err := io.Copy(io.Discard, r)
				return err
			}
			spec.Layers = append(spec.Layers, l)
		}
		d := createDir(t, filepath.Join(t.TempDir(), "layout"))
		if _, err := layout.Push(t.Context(), d, artifact(t, spec), layout.PushOptions{Concurrency: 3}); err != nil {
			t.Fatal(err)
		}
		if sources.most < 2 || sources.most > 3 || sources.open != 0 {
			t.Errorf("%s: %d were open at once, and %d still are; want at most 3, and 0", name, sources.most, sources.open)
		}
	}
}

// reopens opens a layer again before it closes the last reader, as an upload does that
// goes on elsewhere.
type reopens struct {
	layout.Store
	both *sync.WaitGroup // until every layer is open
}

func (s reopens) Push(ctx context.Context, l layout.Layer, w layout.Watch) error {
	first, err := l.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer first.Close()
	s.both.Done()
	s.both.Wait()
	second, err := l.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer second.Close()
	return s.Store.Push(ctx, l, w)
}

func TestPushThatOpensAgainDoesNotWaitForItself(t *testing.T) {
	spec := layout.ArtifactSpec{Config: configLayer()}
	for i := range 3 {
		b, desc := storetest.Blob(byte(i), 1000)
		spec.Layers = append(spec.Layers, storetest.Layer(desc, b))
	}
	a := artifact(t, spec)
	s := reopens{createDir(t, filepath.Join(t.TempDir(), "layout")), new(sync.WaitGroup)}
	s.both.Add(len(a.Layers) + 1)
	if _, err := layout.Push(t.Context(), s, a, layout.PushOptions{Concurrency: len(a.Layers) + 1}); err != nil {
		t.Fatal(err)
	}
}
