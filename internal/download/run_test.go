package download_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/google/go-cmp/cmp"
)

func TestPartsOfAllShapes(t *testing.T) {
	for name, sizes := range map[string][]int{
		"nothing":            {},
		"one empty":          {0},
		"one byte":           {1},
		"a block":            {mib},
		"a block and a byte": {mib + 1},
		"less than a block":  {mib - 1, 5, 0, 300_000},
		"one of many ranges": {37*mib + 12345},
		"many":               {5 * mib, 1, 0, 3*mib + 7, 17 * mib, mib, mib, 400_000, 9*mib - 1},
	} {
		for _, workers := range []int{1, 3, 0, 50} {
			p := newPlace(sizes...)
			w := newWatch(t)
			res, err := p.run(t, download.Options{Concurrency: workers, Progress: w.report})
			if err != nil {
				t.Fatalf("%s, %d workers: %v", name, workers, err)
			}
			p.complete(t)
			var total int64
			for _, size := range sizes {
				total += int64(size)
			}
			if want := (download.Result{Total: total, There: total}); res != want {
				t.Errorf("%s: got %+v, want %+v", name, res, want)
			}
			if p.given != total {
				t.Errorf("%s: %d bytes came, want %d", name, p.given, total)
			}
			for i := range sizes {
				states := w.states(p.parts[i].Name)
				if states[0] != "started" || states[len(states)-1] != "finished" || len(states) > 3 {
					t.Errorf("%s: part %d: events %q", name, i, states)
				}
			}
			if limit := max(workers, 8*(1-min(workers, 1))); p.most > limit {
				t.Errorf("%s: %d answers were open at once, want at most %d", name, p.most, limit)
			}
		}
	}
}

// One part, and four, are read over all connections: with fewer at once this
// would wait for ever.
func TestAllConnectionsAreUsed(t *testing.T) {
	for name, sizes := range map[string][]int{"one": {32 * mib}, "four": {8 * mib, 8 * mib, 8 * mib, 8 * mib}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(sizes...)
			var all sync.WaitGroup
			all.Add(8)
			var mu sync.Mutex
			begun := 0
			p.reading = func(_ context.Context, _ ask, r io.Reader) io.Reader {
				mu.Lock()
				begun++
				first := begun <= 8
				mu.Unlock()
				if !first {
					return r
				}
				all.Done()
				return &waiting{r, &all}
			}
			if _, err := p.run(t, download.Options{}); err != nil {
				t.Fatal(err)
			}
			p.complete(t)
		})
	}
}

type waiting struct {
	r   io.Reader
	all *sync.WaitGroup
}

func (w *waiting) Read(b []byte) (int, error) {
	w.all.Wait()
	return w.r.Read(b)
}

// No request is for more than a range, every byte is asked for once, and ranges
// begin where blocks do.
func TestRangesAreClosedAndDisjoint(t *testing.T) {
	p := newPlace(140*mib+1, 10*mib)
	if _, err := p.run(t, download.Options{Concurrency: 2}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	var covered [2]int64
	slices.SortFunc(p.asked, func(a, b ask) int { return int(a.off/mib - b.off/mib) })
	for _, a := range p.asked {
		if a.off != covered[a.part] || a.n <= 0 || a.n > download.RangeSize {
			t.Errorf("%+v: want a range from %d of at most %d", a, covered[a.part], download.RangeSize)
		}
		covered[a.part] = a.off + a.n
	}
	if n := len(p.asked); n > 140/16+3 {
		t.Errorf("%d requests", n)
	}
}

// A place that a first answer is awaited from is asked one question at a time.
func TestTheFirstAnswerTells(t *testing.T) {
	p := newPlace(20*mib, 20*mib)
	waiting := map[int]int{}
	var mu sync.Mutex
	p.opening = func(_ context.Context, a ask) error {
		mu.Lock()
		defer mu.Unlock()
		if waiting[a.part]++; a.off == 0 && waiting[a.part] != 1 {
			t.Errorf("part %d: asked before the first answer was there", a.part)
		}
		if a.off > 0 && waiting[a.part] == 1 {
			t.Errorf("part %d: the first question is for byte %d", a.part, a.off)
		}
		return nil
	}
	if _, err := p.run(t, download.Options{}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
}

// Parts that lie in one stream are read in its order, one after another; the
// large one that ranges do for is not.
func TestBundles(t *testing.T) {
	p := newPlace(100, 200, 300, 40*mib, 400, 0)
	for i := range p.parts {
		p.parts[i].Bundle = 1
	}
	p.parts[0].Ranged, p.parts[4].Ranged = false, false
	p.parts[5].Bundle = 0
	if _, err := p.run(t, download.Options{}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	var streamed []int
	for _, a := range p.asked {
		if a.n < 0 && a.part < 5 {
			streamed = append(streamed, a.part)
		}
		if (a.n >= 0) != (a.part == 3) {
			t.Errorf("%+v: want ranges of part 3 and streams of the others", a)
		}
	}
	if diff := cmp.Diff([]int{0, 1, 2, 4}, streamed); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
}

// The largest is begun first, so that no single part is what everything waits
// for at the end.
func TestTheLargestFirst(t *testing.T) {
	p := newPlace(5, 3*mib, 7, 4*mib)
	if _, err := p.run(t, download.Options{Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	var order []int
	for _, a := range p.asked {
		order = append(order, a.part)
	}
	order = slices.Compact(order)
	if diff := cmp.Diff([]int{3, 1, 2, 0}, order); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// ending calls a function at the end of a reader.
type ending struct {
	r  io.Reader
	at func()
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	if err == io.EOF && e.at != nil {
		e.at()
		e.at = nil
	}
	return n, err
}

// A part of a size that nobody knows is a stream.
func TestUnknownSize(t *testing.T) {
	p := newPlace(2*mib+5, 10)
	p.parts[0].Size, p.parts[0].Ranged = -1, false
	res, err := p.run(t, download.Options{Journal: p.journal(t, &memory{})})
	if err != nil || res.Total != 10 {
		t.Errorf("got %+v, %v", res, err)
	}
	p.complete(t)
}

func TestCheckIsAskedOfPartsReadByRanges(t *testing.T) {
	p := newPlace(10, 5*mib)
	p.parts[0].Ranged = false
	job := p.job()
	broken := errors.New("broken")
	job.Check = func(_ context.Context, i int) error {
		if i == 1 {
			return broken
		}
		t.Errorf("part %d is checked", i)
		return nil
	}
	if _, err := download.Run(t.Context(), job, download.Options{Concurrency: 1}); !errors.Is(err, broken) {
		t.Errorf("got %v, want what Check returns", err)
	}
}

// A part is not through before its places have said all that they have to say.
func TestTheLastWordCounts(t *testing.T) {
	p := newPlace(4 * mib)
	p.reading = func(_ context.Context, _ ask, r io.Reader) io.Reader {
		return &ending{r, func() {
			for range 100 {
				pause() // so that the part is through, if nobody waits for this
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.done) > 0 {
				t.Error("the part is through, and an answer was not at its end")
			}
		}}
	}
	if _, err := p.run(t, download.Options{Concurrency: 4}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
}

// A part tells ten times a second at most how far it is.
func TestPartsAreNotTalkative(t *testing.T) {
	p := newPlace(48*mib, 5)
	w := newWatch(t)
	began := time.Now()
	if _, err := p.run(t, download.Options{Progress: w.report}); err != nil {
		t.Fatal(err)
	}
	most := 4 + int(time.Since(began)/(100*time.Millisecond)) // started, the first, finished
	if n := len(w.events[p.parts[0].Name]); n > most {
		t.Errorf("%d events, want at most %d", n, most)
	}
}
