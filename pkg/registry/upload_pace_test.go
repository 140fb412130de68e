package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// race plays uploads that share a line evenly, a second at a time, and returns
// when the first of them is said to be too slow, and what is said; 0 where all
// come through. first is the size of the one.
func race(line int64, limit time.Duration, sizes ...int64) (at time.Duration, first int64, err error) {
	var m meter
	b := &behaviour{name: "Example", upload: limit}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var list []*pace
	size := map[*pace]int64{}
	for _, n := range sizes {
		p := m.start(b, began, n)
		list, size[p] = append(list, p), n
	}
	for len(list) > 0 {
		at += time.Second
		var left []*pace
		for _, p := range list {
			share := min(line/int64(len(list)), p.left)
			if err := p.sent(int(share), began.Add(at)); err != nil {
				return at, size[p], err
			}
			if p.left == 0 {
				p.end()
				continue
			}
			left = append(left, p)
		}
		list = left
	}
	return 0, 0, nil
}

// TestPace: what can be through in time is left alone, what can't is said early,
// but not at once.
func TestPace(t *testing.T) {
	const (
		mb    = 1_000_000
		gb    = 1000 * mb
		limit = 10 * time.Minute
	)
	for name, tt := range map[string]struct {
		line  int64 // bytes a second
		sizes []int64
		slow  bool
		says  string
		hints string
	}{
		"fast":            {line: 100 * mb, sizes: []int64{10 * gb}},
		"just in time":    {line: 17 * mb, sizes: []int64{10 * gb}},
		"slow":            {line: 10 * mb, sizes: []int64{10 * gb}, slow: true, says: "9.7 GB are left of it and 0 other uploads at 10 MB/s: got a need of 16m40s in all, want at most 10m0s an upload (Example)", hints: "faster line"},
		"small and slow":  {line: 1 * mb, sizes: []int64{500 * mb}},
		"very small":      {line: 1000, sizes: []int64{20_000}},
		"one of many":     {line: 80 * mb, sizes: []int64{10 * gb, gb, gb, gb, gb, gb, gb, gb}}, // alone at last, it has the whole line
		"many alike":      {line: 80 * mb, sizes: []int64{9 * gb, 9 * gb, 9 * gb, 9 * gb, 9 * gb, 9 * gb, 9 * gb, 9 * gb}, slow: true, says: "7 other uploads", hints: "Concurrency 1"},
		"one too large":   {line: 10 * mb, sizes: []int64{gb, 9 * gb, gb}, slow: true, says: "2 other uploads", hints: "faster line"},
		"hopeless anyway": {line: 10 * mb, sizes: []int64{9 * gb, 9 * gb}, slow: true, says: "1 other upload", hints: "faster line"},
	} {
		at, first, err := race(tt.line, limit, tt.sizes...)
		if !tt.slow {
			if err != nil {
				t.Errorf("%s: after %s: %v", name, at, err)
			}
			continue
		}
		if err == nil || at < limit/leastMeasure || at > limit/2 {
			t.Errorf("%s: after %s: %v", name, at, err)
			continue
		}
		checkError(t, err, layout.ErrLimit, tt.says, tt.hints)
		if first != slices.Max(tt.sizes) {
			t.Errorf("%s: it was said of the upload of %d bytes", name, first)
		}
	}
}

// TestPaceStartsAnew: a pause between two uploads slows neither.
func TestPaceStartsAnew(t *testing.T) {
	var m meter
	b := &behaviour{upload: 10 * time.Minute}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		p := m.start(b, now, 6e9)
		for range 60 {
			now = now.Add(time.Second)
			if err := p.sent(1e8, now); err != nil {
				t.Fatal(err)
			}
		}
		p.end()
		now = now.Add(time.Hour)
	}
	if n := len(m.samples); n > 100 {
		t.Errorf("%d samples are kept", n)
	}
}

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// TestPushTooSlow: an upload that can't be through in time is stopped, and said
// why; the registry has no part in it.
func TestPushTooSlow(t *testing.T) {
	for name, tt := range map[string]struct {
		perMiB time.Duration
		chunk  int64
		slow   bool
	}{
		"slow":      {perMiB: 10 * time.Second, slow: true},
		"in time":   {perMiB: time.Second},
		"in chunks": {perMiB: 10 * time.Second, chunk: 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{ChunkSize: tt.chunk, StateDir: t.TempDir()})
			repo.host.behaviour = behaviour{name: "Example", upload: time.Minute}
			c := &clock{at: time.Now()}
			repo.client.now = c.now
			blob := random(1, 16<<20)
			open := func(_ context.Context, off int64) (io.ReadCloser, error) {
				r, sum := bytes.NewReader(blob[off:]), 0
				return io.NopCloser(readerFunc(func(p []byte) (int, error) {
					n, err := r.Read(p)
					for sum += n; sum >= 1<<20; sum -= 1 << 20 {
						c.move(tt.perMiB)
					}
					return n, err
				})), nil
			}
			err := repo.Push(t.Context(), layer(describeBytes(blob), open), layout.Watch{})
			if !tt.slow {
				if err != nil {
					t.Error(err)
				}
				return
			}
			checkError(t, err, layout.ErrLimit, "want at most 1m0s an upload (Example)", "faster line")
			if in, _ := reg.Bytes("PUT", uploads); in >= 16<<20 || reg.Count("PUT", uploads) > 1 {
				t.Errorf("%d bytes came in with %d PUTs", in, reg.Count("PUT", uploads))
			}
		})
	}
}

func TestSlowError(t *testing.T) {
	_, _, err := race(1e6, time.Minute, 1e9)
	if httprange.Transient(err, true) {
		t.Error("it would be tried again")
	}
	if !errors.Is(err, layout.ErrLimit) || len(hint.Of(err)) != 1 {
		t.Errorf("got %v with %q", err, hint.Of(err))
	}
}

// Sizes that no disk holds, at the speed of nothing, are too slow as well.
func TestPaceOfHugeSizes(t *testing.T) {
	for _, sizes := range [][]int64{{1 << 62}, {1 << 40, 1 << 40}, {1 << 62, 1 << 62, 1 << 62}} {
		if _, _, err := race(6, 10*time.Minute, sizes...); !errors.Is(err, layout.ErrLimit) {
			t.Errorf("%d: got %v, want ErrLimit", sizes, err)
		}
	}
}
