package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// commitFactor times the stall timeout is how long a registry may take to
// finish an upload: some read the whole blob again.
const commitFactor = 30

// errStalled: the registry took no byte, or gave none, for too long.
var errStalled = errors.New("registry has stalled")

// watchdog aborts one request that makes no progress. Time that the source or
// the reader takes does not count.
type watchdog struct {
	ctx    context.Context //nolint:containedctx // the request's
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func newWatchdog(ctx context.Context, limit time.Duration) *watchdog {
	w := &watchdog{limit: limit}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(commitFactor*limit, func() { w.cancel(errStalled) })
	return w
}

// pause is called while the source is read. A nil watchdog does nothing.
func (w *watchdog) pause() {
	if w != nil {
		w.timer.Stop()
	}
}

// resume waits for the network again; done says that every byte went out.
func (w *watchdog) resume(done bool) {
	if w == nil || w.ctx.Err() != nil {
		return
	}
	limit := w.limit
	if done {
		limit *= commitFactor
	}
	w.timer.Reset(limit)
}

// answer stops waiting, and passes on what came of the request. What a registry
// sends once it is told to stop is no answer.
func (w *watchdog) answer(resp *http.Response, err error) (*http.Response, error) {
	w.pause()
	if aborted := w.ctx.Err(); err == nil && aborted != nil {
		resp.Body.Close()
		return nil, aborted
	}
	return resp, err
}

func (w *watchdog) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// fail aborts the request for a reason of its own.
func (w *watchdog) fail(err error) { w.cancel(err) }

// explain returns why a request failed, which is err unless it was aborted here.
func (w *watchdog) explain(err error) error {
	var slow *slowError
	switch cause := context.Cause(w.ctx); {
	case errors.Is(cause, errStalled):
		return fmt.Errorf("%w: nothing moved for %s", errStalled, w.limit)
	case errors.As(cause, &slow):
		return cause
	}
	return err
}
