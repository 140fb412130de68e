package httprange

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watchdog aborts one request whose server sends nothing for too long. Only
// time spent waiting for the server counts, not the caller's.
type watchdog struct {
	ctx    context.Context //nolint:containedctx // the request's
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration

	minRate int64 // bytes per second
	got     int64 // bytes in this window
	waited  time.Duration
}

var errSilent = errors.New("silent")

func newWatchdog(ctx context.Context, limit time.Duration, minRate int64) *watchdog {
	w := &watchdog{limit: limit, minRate: minRate}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.cancel(errSilent) })
	w.timer.Stop()
	return w
}

func (w *watchdog) start() { w.timer.Reset(w.limit) }
func (w *watchdog) stop()  { w.timer.Stop() }

func (w *watchdog) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// aborted returns why the request was aborted, nil if it was not. A server that
// is told so may still end its response in good order, as if that were all.
func (w *watchdog) aborted() error {
	if err := w.ctx.Err(); err != nil {
		return w.explain(err)
	}
	return nil
}

// explain says that err is the watchdog's doing where it is.
func (w *watchdog) explain(err error) error {
	if errors.Is(context.Cause(w.ctx), errSilent) {
		return fmt.Errorf("%w: no byte for %s", ErrStalled, w.limit)
	}
	return err
}

// slow reports a server that sent something, but less than minRate over the
// last window.
func (w *watchdog) slow(n int, waited time.Duration) error {
	w.got += int64(n)
	w.waited += waited
	if w.waited < w.limit {
		return nil
	}
	got, per := w.got, w.waited
	w.got, w.waited = 0, 0
	if float64(got) < float64(w.minRate)*per.Seconds() {
		return fmt.Errorf("%w: %d bytes in %s, want %d a second", ErrStalled, got, per.Round(time.Second), w.minRate)
	}
	return nil
}

// meter tells progress from a trickle.
type meter struct {
	got    int64
	waited time.Duration
}

func (m *meter) add(n int, waited time.Duration) {
	m.got += int64(n)
	m.waited += waited
}

// paused counts a wait between attempts, so that one byte an attempt is no
// progress where a rate is wanted.
func (m *meter) paused(d time.Duration) { m.waited += d }

// progressed reports whether bytes came since the last failure, and fast enough.
func (m *meter) progressed(minRate int64) bool {
	yes := m.got > 0 && float64(m.got) >= float64(minRate)*m.waited.Seconds()
	*m = meter{}
	return yes
}
