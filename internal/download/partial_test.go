package download_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// After a sync that failed, every block that was there is written once more, with
// the bytes that were hashed; nothing is fetched again.
func TestWhatWasNotSyncedIsWrittenAgain(t *testing.T) {
	for _, stream := range []bool{false, true} {
		p := newPlace(5*mib+7, 2*mib)
		for i := range p.parts {
			p.parts[i].Ranged = !stream
		}
		journal := &memory{}
		j := p.journal(t, journal)
		if _, err := p.run(t, download.Options{Journal: j}); err != nil {
			t.Fatal(err)
		}
		if err := j.Distrust(); err != nil {
			t.Fatal(err)
		}
		for _, again := range []string{"the run after", "and the next"} {
			q := p.again()
			var written atomic.Int64
			for _, f := range q.files {
				f.err = func(_ int64, n int) error { written.Add(int64(n)); return nil }
			}
			res, err := q.run(t, download.Options{Journal: q.journal(t, journal)})
			if err != nil || q.given > 0 || res.Resumed != 7*mib+7 || written.Load() != 7*mib+7 {
				t.Errorf("%s: %d bytes came, %d were used, %d written again: %v", again, q.given, res.Resumed, written.Load(), err)
			}
			q.complete(t)
		}
	}
}

// stub is an output of which only the journal is used.
type stub struct {
	journal *memory
	stale   bool
}

func (*stub) Partial() string                 { return "NAME.partial" }
func (s *stub) Stale() bool                   { return s.stale }
func (s *stub) Journal() download.JournalFile { return s.journal }
func (*stub) Clear() error                    { return nil }
func (*stub) Commit() error                   { return nil }
func (*stub) Unsynced() bool                  { return false }
func (*stub) Keep() (bool, error)             { return true, nil }
func (*stub) Discard() error                  { return nil }

// Parts that are brought by themselves, at once or one after another, are gone on with
// as those of one run are.
func TestPartsByThemselves(t *testing.T) {
	p := newPlace(3*mib, 2*mib, 70_000, 4*mib+1)
	journal := &memory{}
	run := func(q *place, stale bool, parts ...int) (resumed int64, end error) {
		t.Helper()
		partial := download.NewPartial(&stub{journal, stale})
		whole := q.job()
		if err := partial.TakeOver(t.Context(), "parts", &whole); err != nil {
			t.Fatal(err)
		}
		errs := make([]error, len(parts))
		var running sync.WaitGroup
		for n, i := range parts {
			running.Go(func() {
				one := q.job()
				at := func(int) int { return i }
				one.Parts = one.Parts[i : i+1]
				ranged, done, create, open := one.Range, one.Done, one.Create, one.Whole
				one.Range = func(ctx context.Context, j int, off, n int64) (io.ReadCloser, error) {
					return ranged(ctx, at(j), off, n)
				}
				one.Whole = func(ctx context.Context, j int) (io.ReadCloser, error) { return open(ctx, at(j)) }
				one.Create = func(j int) (download.File, error) { return create(at(j)) }
				one.Done = func(j int, f download.File, size int64, crc uint32) error { return done(at(j), f, size, crc) }
				_, errs[n] = partial.RunPart(t.Context(), i, one, download.Options{})
			})
		}
		running.Wait()
		err := errors.Join(errs...)
		return partial.Resumed(), partial.End(err)
	}
	down := errors.New("down")
	p.opening = func(_ context.Context, a ask) error {
		if a.part == 3 && a.off >= 2*mib {
			return down
		}
		return nil
	}
	_, err := run(p, false, 0, 3)
	if !errors.Is(err, down) || !strings.Contains(fmt.Sprint(hint.Of(err)), " of 9.5 MB are there") {
		t.Fatalf("got %v with the hints %q", err, hint.Of(err))
	}
	q := p.again()
	resumed, err := run(q, true, 0, 1, 2, 3)
	if err != nil || resumed < 3*mib || q.given > 7*mib {
		t.Errorf("%d bytes were there, %d came: %v", resumed, q.given, err)
	}
	q.complete(t)
}
