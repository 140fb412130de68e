package download_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/google/go-cmp/cmp"
)

// asked returns the questions about a part: "range" for each kind of question
// that follows another kind.
func (p *place) kinds(part int) (kinds []string, ranges int) {
	for _, a := range p.asked {
		if a.part != part {
			continue
		}
		kind := "range"
		if a.n < 0 {
			kind = "stream"
		} else {
			ranges++
		}
		if n := len(kinds); n == 0 || kinds[n-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	return kinds, ranges
}

// A place without ranges is asked for one, and then for the whole: once.
func TestNoRanges(t *testing.T) {
	p := newPlace(20*mib, 3*mib)
	p.opening = func(ctx context.Context, a ask) error {
		if a.part == 0 && a.n >= 0 {
			if !ranges.IsOnly(ctx) {
				t.Errorf("%+v: is not asked for as a range alone", a)
			}
			return fmt.Errorf("get it: %w", ranges.ErrNone)
		}
		return nil
	}
	if _, err := p.run(t, download.Options{}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	if kinds, ranges := p.kinds(0); ranges != 1 || len(kinds) != 2 {
		t.Errorf("part 0: got %d ranges and then %q, want one and a stream", ranges, kinds)
	}
	if kinds, _ := p.kinds(1); len(kinds) != 1 || kinds[0] != "range" {
		t.Errorf("part 1: got %q, want ranges", kinds)
	}
	if p.given != 23*mib {
		t.Errorf("%d bytes came, want %d", p.given, 23*mib)
	}
}

// A range that came to its end while its part was given up is not the last that
// is heard of the part.
func TestARangeThatEndsAfterThePartFell(t *testing.T) {
	p := newPlace(20 * mib)
	atEnd := make(chan struct{})
	p.reading = func(ctx context.Context, a ask, r io.Reader) io.Reader {
		switch {
		case a.n < 0:
			return r
		case a.off == 0: // the first answer, after which the other worker asks
			return io.MultiReader(r, readerFunc(func([]byte) (int, error) {
				close(atEnd)
				<-ctx.Done()
				return 0, io.EOF
			}))
		default:
			<-atEnd
			return failing(r, 300_000, ranges.ErrNone)
		}
	}
	if _, err := p.run(t, download.Options{Concurrency: 2}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	if kinds, _ := p.kinds(0); len(kinds) != 2 || kinds[1] != "stream" {
		t.Errorf("got %q, want ranges and then a stream", kinds)
	}
}

// A place may think better of ranges while they are read.
func TestRangesThatEnd(t *testing.T) {
	for name, spoil := range map[string]func(r io.Reader) io.Reader{
		"no more":  func(r io.Reader) io.Reader { return failing(r, 300_000, ranges.ErrNone) },
		"short":    func(r io.Reader) io.Reader { return io.LimitReader(r, 300_000) },
		"cut":      func(r io.Reader) io.Reader { return failing(r, 300_000, io.ErrUnexpectedEOF) },
		"nothing":  func(io.Reader) io.Reader { return strings.NewReader("") },
		"too long": func(r io.Reader) io.Reader { return io.MultiReader(r, strings.NewReader("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(20 * mib)
			p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
				if a.off == 4*mib {
					return spoil(r)
				}
				return r
			}
			if _, err := p.run(t, download.Options{Concurrency: 4}); err != nil {
				t.Fatal(err)
			}
			p.complete(t)
			if kinds, _ := p.kinds(0); len(kinds) != 2 || kinds[1] != "stream" {
				t.Errorf("got %q, want ranges and then a stream", kinds)
			}
		})
	}
}

func TestErrorsEndTheRun(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		spoil func(p *place)
		want  error
		text  string
	}{
		"a range can't be opened": {func(p *place) {
			p.opening = func(_ context.Context, a ask) error { return only(a.part == 1 && a.off > 0, broken) }
		}, broken, "part 1: broken"},
		"a range breaks": {func(p *place) {
			p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
				if a.part == 1 && a.off > 0 {
					return failing(r, 100, broken)
				}
				return r
			}
		}, broken, "part 1: broken"},
		"a stream can't be opened": {func(p *place) {
			p.parts[1].Ranged = false
			p.opening = func(_ context.Context, a ask) error { return only(a.part == 1 && a.n < 0, broken) }
		}, broken, "part 1: broken"},
		"a stream is short": {func(p *place) {
			p.parts[1].Ranged = false
			p.whole = p.second(p.content[1][:5*mib])
		}, errWrong, "part 1: ends after 5242880 bytes, want 12582912"},
		"a stream is long": {func(p *place) {
			p.parts[1].Ranged = false
			p.whole = p.second(append(p.content[1][:12*mib:12*mib], 'x'))
		}, errWrong, "part 1: is longer than the 12582912 bytes that it should have"},
		"a stream that never ends": {func(p *place) {
			p.parts[1].Ranged = false
			p.whole = func(i int) io.Reader {
				if i == 1 {
					return empty{}
				}
				return bytes.NewReader(p.content[i])
			}
		}, io.ErrNoProgress, "part 1: "},
		"a range that never ends": {func(p *place) {
			p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
				if a.part == 1 {
					return empty{}
				}
				return r
			}
		}, io.ErrNoProgress, "part 1: "},
		"other content": {func(p *place) {
			p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
				if a.part == 1 && a.off == 0 {
					return bytes.NewReader(content(99, int(a.n)))
				}
				return r
			}
		}, errWrong, "part 1: got sha256 "},
		"the disk is full": {func(p *place) {
			p.files[1].err = func(off int64, _ int) error { return only(off > 3*mib, broken) }
		}, broken, "broken"},
		"the journal's disk is full": {func(p *place) {
			p.files = append(p.files, &memory{err: func(off int64, _ int) error { return only(off > 100, broken) }})
		}, broken, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(2*mib, 12*mib, 0)
			c.spoil(p)
			journal := &memory{}
			if len(p.files) > 3 {
				journal = p.files[3]
			}
			_, err := p.run(t, download.Options{Journal: p.journal(t, journal)})
			if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.text) {
				t.Errorf("got %v, want %v saying %q", err, c.want, c.text)
			}
			if kinds, _ := p.kinds(1); len(kinds) > 1 {
				t.Errorf("got %q: want that nothing else is tried", kinds)
			}
		})
	}
}

// second gives b as part 1, and the others as they are.
func (p *place) second(b []byte) func(int) io.Reader {
	return func(i int) io.Reader {
		if i == 1 {
			return bytes.NewReader(b)
		}
		return bytes.NewReader(p.content[i])
	}
}

func only(when bool, err error) error {
	if when {
		return err
	}
	return nil
}

type empty struct{}

func (empty) Read([]byte) (int, error) { return 0, nil }

func TestAnotherAttempt(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, times := range []int{2, 3} {
			p := newPlace(3 * mib)
			p.parts[0].Ranged = !stream
			fails := 0
			p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
				if (a.off == mib || stream) && fails < times {
					fails++
					return failing(r, 600_000, temporaryError{})
				}
				return r
			}
			w := newWatch(t)
			_, err := p.run(t, download.Options{Concurrency: 1, Progress: w.report})
			if (err == nil) != (times == 2) || fails != times {
				t.Errorf("stream %v: %d failures of %d: got %v", stream, fails, times, err)
			}
			if err == nil {
				p.complete(t)
			}
			if got := strings.Count(strings.Join(w.states(p.parts[0].Name), " "), "retrying"); got == 0 {
				t.Errorf("stream %v: nobody was told: %q", stream, w.states(p.parts[0].Name))
			}
		}
	}
}

// Attempts are counted anew with every range that does well.
func TestManyAttemptsWithProgress(t *testing.T) {
	p := newPlace(8 * mib)
	failed := map[int64]bool{}
	p.opening = func(_ context.Context, a ask) error {
		if !failed[a.off] {
			failed[a.off] = true
			return temporaryError{}
		}
		return nil
	}
	if _, err := p.run(t, download.Options{Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	if len(failed) < 3 {
		t.Errorf("%d failures: the test tests nothing", len(failed))
	}
}

// Wrong bytes of a part that another place may have right are replaced by a
// verified stream.
func TestElsewhere(t *testing.T) {
	p := newPlace(8*mib, 8*mib)
	p.parts[0].Elsewhere = true
	p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
		if a.part == 0 && a.off == 2*mib {
			return bytes.NewReader(content(99, int(a.n)))
		}
		return r
	}
	if _, err := p.run(t, download.Options{}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	if diff := cmp.Diff([]string{"range", "stream"}, first(p.kinds(0))); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

func first[A, B any](a A, _ B) A { return a }

// What a disk gives back otherwise than it was written is fetched again.
func TestADiskThatForgets(t *testing.T) {
	p := newPlace(8 * mib)
	var once sync.Once
	p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
		if a.off != 0 {
			return r
		}
		// The other ranges have arrived, and wait on the disk, when this one ends.
		return &ending{io.MultiReader(io.LimitReader(r, a.n-1), &until{func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.given < 8*mib-1 {
				return false
			}
			once.Do(func() { p.files[0].flip(3*mib + 77) })
			return true
		}}, r), nil}
	}
	if _, err := p.run(t, download.Options{}); err != nil {
		t.Fatal(err)
	}
	p.complete(t)
	if want := int64(9 * mib); p.given != want {
		t.Errorf("%d bytes came, want %d: one block twice", p.given, want)
	}
}

// until gives nothing, and its end once a condition holds.
type until struct{ holds func() bool }

func (u *until) Read([]byte) (int, error) {
	for !u.holds() {
		pause()
	}
	return 0, io.EOF
}

// A disk that forgets everything is given up.
func TestADiskThatForgetsEverything(t *testing.T) {
	p := newPlace(40 * mib)
	job := p.job()
	job.Create = func(int) (download.File, error) { return forgetful{p.files[0]}, nil }
	_, err := download.Run(t.Context(), job, download.Options{})
	if err == nil || !strings.Contains(err.Error(), "part 0: read back: the disk gives back other bytes") {
		t.Errorf("got %v", err)
	}
}

type forgetful struct{ *memory }

func (f forgetful) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.memory.ReadAt(b, off)
	b[0] ^= 1
	return n, err
}

func TestCancel(t *testing.T) {
	why := errors.New("enough")
	for _, stream := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := newPlace(20*mib, 20*mib, 5)
		p.parts[0].Ranged, p.parts[1].Ranged = !stream, !stream
		p.reading = func(ctx context.Context, _ ask, r io.Reader) io.Reader {
			return io.MultiReader(io.LimitReader(r, 300_000), &hanging{ctx, func() { cancel(why) }})
		}
		if _, err := p.runUnder(ctx, t, download.Options{}); !errors.Is(err, why) {
			t.Errorf("stream %v: got %v, want %v", stream, err, why)
		}
	}
}

// hanging gives nothing until its context ends.
type hanging struct {
	ctx   context.Context //nolint:containedctx // an answer's
	begin func()
}

func (h *hanging) Read([]byte) (int, error) {
	h.begin()
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

// A part that can't be had may be gone on without.
func TestFailedParts(t *testing.T) {
	p := newPlace(3*mib, 10, 2*mib)
	for i := range p.parts {
		p.parts[i].Ranged = false
	}
	broken := errors.New("broken")
	p.reading = func(_ context.Context, a ask, r io.Reader) io.Reader {
		if a.part == 0 {
			return failing(r, 2*mib, broken)
		}
		return r
	}
	job := p.job()
	var failed []string
	job.Failed = func(i int, size int64, err error) error {
		failed = append(failed, fmt.Sprintf("%d %d %v", i, size, err))
		return nil
	}
	if _, err := download.Run(t.Context(), job, download.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0 2097152 part 0: broken"}, failed); diff != "" || len(p.done) != 2 {
		t.Errorf("done %v, failed (-want +got):\n%s", p.done, diff)
	}
}
