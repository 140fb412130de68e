package stall

import (
	"context"
	"sync"
	"time"
)

// phase is what an exchange waits for.
type phase int

const (
	sending  phase = iota // the other side takes the request's body
	header                // it answers
	commit                // it answers to all of a body that it stores
	body                  // it sends the answer's body
	finished              // nothing any more
)

// slots is how many parts the stall time has: what moved is counted for each, so
// that the last stall time is judged, whenever it began.
const slots = 4

// guard watches one exchange. The request's body is read by a goroutine of the
// transport while RoundTrip waits.
type guard struct {
	ctx    context.Context //nolint:containedctx // the exchange's
	cancel context.CancelCauseFunc
	t      *Transport
	fault  Error // but for what was waited for

	mu      sync.Mutex
	timer   *time.Timer
	phase   phase
	waiting bool
	since   time.Time     // begin of this wait, or of what was not counted yet
	waited  time.Duration // in this slot, or phase
	moved   [slots]int64  // bytes in the last slots
	turns   int           // slots that are over
}

func (t *Transport) guard(ctx context.Context, fault Error) *guard {
	g := &guard{t: t, fault: fault}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.timer = time.AfterFunc(time.Hour, g.tick)
	g.timer.Stop()
	return g
}

// enter begins a phase, and to wait; that of an exchange which is further already
// is not begun.
func (g *guard) enter(p phase) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p < g.phase {
		return
	}
	g.phase, g.waited, g.turns, g.moved = p, 0, 0, [slots]int64{}
	g.resume()
}

// pause stops the clock in a phase: it is our turn.
func (g *guard) pause(p phase) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == p && g.waiting {
		g.count(time.Now())
		g.waiting = false
		g.timer.Stop()
	}
}

// wait lets the clock of a phase go on: it is the other side's turn.
func (g *guard) wait(p phase) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == p && !g.waiting {
		g.resume()
	}
}

// progress notes that n bytes of a phase have moved.
func (g *guard) progress(p phase, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == p {
		g.moved[g.turns%slots] += int64(n)
	}
}

// end lets go of what the guard holds.
func (g *guard) end() {
	g.mu.Lock()
	g.phase, g.waiting = finished, false
	g.timer.Stop()
	g.mu.Unlock()
	g.cancel(nil)
}

func (g *guard) resume() {
	g.waiting, g.since = true, time.Now()
	g.timer.Reset(max(0, g.span()-g.waited))
}

// tick is the timer's.
func (g *guard) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.waiting {
		return
	}
	if g.count(time.Now()); g.waiting {
		g.timer.Reset(max(0, g.span()-g.waited))
	}
}

// count adds the time up to now, and judges what is over.
func (g *guard) count(now time.Time) {
	g.waited += now.Sub(g.since)
	g.since = now
	for span := g.span(); g.waited >= span && g.ctx.Err() == nil; g.waited -= span {
		if g.moves() {
			g.turns++
			if g.turns >= slots && g.lastSlots() < least(g.t.limit()) {
				g.fail()
				return
			}
			g.moved[g.turns%slots] = 0
			continue
		}
		g.fail()
		return
	}
}

// moves reports whether bytes are waited for, and not an answer as a whole.
func (g *guard) moves() bool { return g.phase == sending || g.phase == body }

// span is how long the phase, or one slot of it, may take.
func (g *guard) span() time.Duration {
	switch {
	case g.moves():
		return max(1, g.t.limit()/slots)
	case g.phase == commit && g.t.Commit > 0:
		return g.t.Commit
	}
	return g.t.limit()
}

func (g *guard) lastSlots() int64 {
	var sum int64
	for _, n := range g.moved {
		sum += n
	}
	return sum
}

// least is what must move in so much time.
func least(d time.Duration) int64 { return max(1, int64(Floor*d.Seconds())) }

// fail aborts the exchange.
func (g *guard) fail() {
	e := g.fault
	e.phase, e.Limit = g.phase, g.t.limit()
	if g.moves() {
		e.Got = g.lastSlots()
	} else {
		e.Limit = g.span()
	}
	g.waiting = false
	g.cancel(&e)
}

// why returns the reason for which the exchange was aborted, nil if it was not.
func (g *guard) why() error {
	if g.ctx.Err() == nil {
		return nil
	}
	if e, ok := context.Cause(g.ctx).(*Error); ok { //nolint:errorlint // ours, never wrapped
		return e
	}
	return g.ctx.Err()
}
