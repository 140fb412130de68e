package download_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

func pause() { time.Sleep(100 * time.Microsecond) }

// killAfter ends a run as if its process had died, once n bytes have come: from
// then on nothing is read, written or remembered.
func (p *place) killAfter(t *testing.T, n int64, opts download.Options) download.Result {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var mu sync.Mutex
	left := n
	p.reading = func(_ context.Context, _ ask, r io.Reader) io.Reader {
		return readerFunc(func(b []byte) (int, error) {
			mu.Lock()
			k := min(int64(len(b)), max(left, 0))
			left -= k
			mu.Unlock()
			if k == 0 {
				kill()
				return 0, context.Canceled
			}
			return r.Read(b[:k])
		})
	}
	res, err := p.runUnder(ctx, t, opts)
	if err == nil {
		t.Error("the run that was to be killed got to its end")
	}
	return res
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A run that is killed at a random byte is gone on with: what had arrived, but
// for blocks that were under way, does not travel again.
func TestKilledAnywhere(t *testing.T) {
	trials := testenv.Few(60, 10)
	rnd := rand.New(rand.NewPCG(1, 2))
	for trial := range trials {
		p := newPlace(7*mib+123, 300_000, 2*mib, 5*mib, 0, 10)
		p.parts[3].Ranged = false
		p.parts[5].Bundle, p.parts[1].Bundle = 1, 1
		const total = 7*mib + 123 + 300_000 + 2*mib + 5*mib + 10
		journal := &memory{}
		workers := 1 + rnd.IntN(8)
		at := 1 + rnd.Int64N(total-1)
		name := fmt.Sprintf("trial %d: %d workers, killed after %d bytes", trial, workers, at)
		left := p.killAfter(t, at, download.Options{Concurrency: workers, Journal: p.journal(t, journal)})
		if rnd.IntN(2) == 0 { // in the middle of a record
			journal.b = journal.b[:max(0, len(journal.b)-rnd.IntN(20))]
		}

		q := p.again()
		w := newWatch(t)
		res, err := q.run(t, download.Options{Concurrency: workers, Journal: q.journal(t, journal), Progress: w.report})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		q.complete(t)
		if got := q.given + res.Resumed; got != total {
			t.Errorf("%s: %d bytes came and %d were there: together %d, want %d", name, q.given, res.Resumed, got, total)
		}
		// One block that was under way for each worker, the stream, and the record
		// that was cut off.
		if lost := at - res.Resumed; lost > int64(workers+1)*mib+5*mib {
			t.Errorf("%s: %d bytes of it were lost", name, lost)
		}
		if left.There < res.Resumed-5*mib-300_000 || left.There > at { // streams count when they are through
			t.Errorf("%s: %d bytes were said to be there, %d were used", name, left.There, res.Resumed)
		}
		if t.Failed() {
			return
		}
	}
}

// Killed many times, it ends all the same, and each byte comes about once.
func TestKilledAgainAndAgain(t *testing.T) {
	p := newPlace(40 * mib)
	journal := &memory{}
	var came int64
	for range 12 {
		q := p.again()
		q.killAfter(t, 3*mib+5, download.Options{Concurrency: 2, Journal: q.journal(t, journal)})
		came += q.given
	}
	q := p.again()
	res, err := q.run(t, download.Options{Journal: q.journal(t, journal)})
	if err != nil {
		t.Fatal(err)
	}
	q.complete(t)
	if came += q.given; came > 40*mib+12*2*mib || res.Resumed < 12*mib {
		t.Errorf("%d bytes came in all, %d of them were used in the end", came, res.Resumed)
	}
}

// partly makes a place half of which an earlier run has brought.
func partly(t *testing.T, elsewhere bool) (p *place, journal *memory, there int64) {
	t.Helper()
	p = newPlace(12*mib, 3*mib)
	p.parts[0].Elsewhere = elsewhere
	journal = &memory{}
	there = p.killAfter(t, 9*mib, download.Options{Concurrency: 3, Journal: p.journal(t, journal)}).There
	if there < 4*mib {
		t.Fatalf("only %d bytes are there: the test tests nothing", there)
	}
	return p.again(), journal, there
}

// Whatever has become of a partial, its bytes are not believed, and the run gets
// to its end.
func TestPartialsThatCanNotBeTrusted(t *testing.T) {
	const total = 15 * mib
	for name, c := range map[string]struct {
		spoil  func(p *place, journal *memory)
		resume bool  // something can be used
		most   int64 // bytes that come the second time, at most, besides what is missing
	}{
		"nothing is wrong": {func(*place, *memory) {}, true, 0},
		"a byte of it is wrong": {func(p *place, _ *memory) {
			p.files[0].flip(5)
		}, true, mib},
		"all of it is wrong": {func(p *place, _ *memory) {
			for _, f := range p.files {
				clear(f.b)
			}
		}, false, total},
		"it is empty":     {func(p *place, _ *memory) { p.files[0].b, p.files[1].b = nil, nil }, false, total},
		"it is cut short": {func(p *place, _ *memory) { p.files[0].b = p.files[0].b[:mib+5] }, true, total},
		"the journal's header is damaged": {func(_ *place, j *memory) {
			j.flip(40)
		}, true, 0},
		"the journal is no journal": {func(_ *place, j *memory) { j.b = []byte("garbage\n") }, false, total},
		"the journal is gone":       {func(_ *place, j *memory) { j.b = nil }, false, total},
		"the journal is all zeros":  {func(_ *place, j *memory) { clear(j.b) }, false, total},
		"a record is wrong":         {func(_ *place, j *memory) { j.flip(96 + 20) }, true, mib},
		"the journal goes on":       {func(_ *place, j *memory) { j.b = append(j.b, content(7, 1000)...) }, true, 0},
		"the journal claims too much": {func(p *place, j *memory) {
			// The records of a run that was through, and the bytes of this one.
			q := p.again()
			q.files = []*memory{{}, {}}
			j.b = nil
			if _, err := q.run(t, download.Options{Journal: q.journal(t, j)}); err != nil {
				t.Fatal(err)
			}
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, journal, there := partly(t, false)
			c.spoil(p, journal)
			res, err := p.run(t, download.Options{Journal: p.journal(t, journal)})
			if err != nil {
				t.Fatal(err)
			}
			p.complete(t)
			if (res.Resumed > 0) != c.resume {
				t.Errorf("%d bytes were used again", res.Resumed)
			}
			if p.given > total-there+c.most || p.given+res.Resumed != total {
				t.Errorf("%d bytes came and %d of %d were used, want %d to come, and at most %d more", p.given, res.Resumed, there, total-there, c.most)
			}
			if res.There != total {
				t.Errorf("%d bytes are there, want all %d", res.There, total)
			}
		})
	}
}

// Bytes that are wrong, although a journal vouches for them, are thrown away once
// the hash has shown it.
func TestAJournalThatLies(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		p := newPlace(12*mib, 3*mib)
		p.parts[0].Elsewhere = elsewhere
		evil := p.again()
		evil.content = [][]byte{content(50, 12*mib), p.content[1]}
		journal := &memory{}
		evil.killAfter(t, 9*mib, download.Options{Concurrency: 3, Journal: evil.journal(t, journal)})

		q := p.again()
		w := newWatch(t)
		res, err := q.run(t, download.Options{Journal: q.journal(t, journal), Progress: w.report})
		if err != nil {
			t.Fatal(err)
		}
		q.complete(t)
		if q.given+res.Resumed < 15*mib || q.given > 15*mib {
			t.Errorf("%d bytes came, and %d were used again", q.given, res.Resumed)
		}
		if kinds, _ := q.kinds(0); len(kinds) != 1 {
			t.Errorf("part 0: got %q, want only ranges", kinds)
		}
	}
}

// Where the place itself is wrong, what was there is thrown away once, all of the
// part is fetched again once, and then the content is at fault.
func TestAPlaceThatIsWrongForGood(t *testing.T) {
	p, journal, _ := partly(t, false)
	p.content = [][]byte{content(50, 12*mib), p.content[1]}
	res, err := p.run(t, download.Options{Journal: p.journal(t, journal)})
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("part 0: got sha256")) || !res.Refused {
		t.Fatalf("got %v and %+v, want that part 0 is wrong", err, res)
	}
	if p.given > 27*mib {
		t.Errorf("%d bytes came, want each at most once more", p.given)
	}
}

// A part that is read as a stream is used whole, or not at all.
func TestStreamsOfAnEarlierRun(t *testing.T) {
	for _, c := range []struct {
		at   int64
		want int64
	}{{3*mib + 500, 3 * mib}, {3*mib + 4*mib, 3 * mib}, {2 * mib, 0}} {
		p := newPlace(3*mib, 5*mib, 8*mib)
		for i := range p.parts {
			p.parts[i].Ranged, p.parts[i].Bundle = false, 1
		}
		journal := &memory{}
		p.killAfter(t, c.at, download.Options{Journal: p.journal(t, journal)})
		q := p.again()
		w := newWatch(t)
		res, err := q.run(t, download.Options{Journal: q.journal(t, journal), Progress: w.report})
		if err != nil {
			t.Fatal(err)
		}
		q.complete(t)
		if res.Resumed != c.want || q.given != 16*mib-c.want {
			t.Errorf("killed at %d: %d bytes were used, %d came; want %d to be used", c.at, res.Resumed, q.given, c.want)
		}
		resumed := 0
		for i := range q.parts {
			for _, e := range w.events[q.parts[i].Name] {
				if e.State.String() == "resumed" {
					resumed += int(e.Done)
				}
			}
		}
		if int64(resumed) != c.want {
			t.Errorf("killed at %d: %d bytes were said to be used, want %d", c.at, resumed, c.want)
		}
	}
}

// What was gone on with is told before anything moves, once.
func TestResumedIsToldFirst(t *testing.T) {
	p, journal, there := partly(t, false)
	w := newWatch(t)
	if _, err := p.run(t, download.Options{Journal: p.journal(t, journal), Progress: w.report}); err != nil {
		t.Fatal(err)
	}
	var resumed int64
	for i := range p.parts {
		events := w.events[p.parts[i].Name]
		for k, e := range events {
			if e.State.String() == "resumed" {
				resumed += e.Done
				if k != 1 {
					t.Errorf("part %d: event %d of %q", i, k, w.states(p.parts[i].Name))
				}
			}
		}
	}
	if resumed != there {
		t.Errorf("%d bytes were said to be used, want %d", resumed, there)
	}
}
