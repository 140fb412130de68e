package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/stall"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// fault is how a request failed.
type fault struct {
	err      error
	header   http.Header   // of the answer, nil where there was none
	status   int           // of the answer, 0 where there was none
	refused  bool          // the answer would be the same again
	source   bool          // err is the source's
	complete bool          // every byte of the request went out
	chunk    bool          // the request was a chunk
	off      int64         // where in the blob it began
	took     time.Duration // of the request
}

// takesNone reports whether a chunk was refused because it is one.
func (f *fault) takesNone() bool {
	switch f.status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return false
	}
	return f.off == 0 && f.refused
}

// recover decides what follows a failed request, and waits for it. It returns
// true where the blob has arrived after all, and the error to give up with.
func (u *upload) recover(ctx context.Context, f *fault) (arrived bool, err error) {
	policy := u.repo.client.opts.Policy
	if ctx.Err() != nil {
		return false, u.interrupted(ctx)
	}
	if stalled := (*stall.Error)(nil); errors.As(f.err, &stalled) && stalled.Commit() {
		u.commits++ // each may take a quarter of an hour
	}
	next, changed := u.strategy.afterRefusal(f, u.session.minChunk)
	u.strategy = next
	switch {
	case f.source && u.believed && errors.Is(f.err, layout.ErrDigest):
		// What an earlier run sent, and noted the hash of, was wrong.
		u.believed = false
		u.cancel(ctx)
		return false, nil
	case f.source:
		// Of a source that may do better, what was sent may be wrong as well; not so
		// where it is far away, and gave no answer.
		if !errors.Is(f.err, httprange.ErrGaveUp) && !errors.Is(f.err, httprange.ErrRetryAfter) || !u.record.keeps() {
			u.cancel(ctx)
		}
		return false, f.err
	case changed:
		u.repo.host.learn(next)
		u.cancel(ctx)
		return false, nil
	case next.impossible, !u.mayPass(ctx, f):
		u.giveUp(ctx, f)
		return false, u.explain(f)
	case f.complete && !f.chunk && (f.status == 0 || f.status >= 500 || isGone(f.status)) && u.arrived(ctx):
		// The registry had finished, and only its answer was lost; or it was still at
		// it when another process went on with what that one had sent.
		u.record.clear()
		return true, nil
	}
	if u.tries.spent(policy) || u.commits >= enough {
		return false, u.exhausted(ctx, f)
	}
	delay, err := policy.Delay(u.tries.failures, f.header)
	u.meter.Add(0, f.took+delay)
	if err != nil {
		u.giveUp(ctx, f)
		return false, fmt.Errorf("%w: %w", f.err, err)
	}
	if err := policy.Pause(ctx, u.tries.failures, delay, f.err); err != nil {
		return false, u.interrupted(ctx)
	}
	return false, u.findOffset(ctx, f)
}

// isGone reports whether a status says that there is no such upload.
func isGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// interrupted ends an upload that its caller gave up. A session that is remembered
// stays, for who goes on with it; any other is of no use to anybody.
func (u *upload) interrupted(ctx context.Context) error {
	if !u.record.keeps() {
		u.cancel(ctx)
	}
	return context.Cause(ctx)
}

// mayPass reports whether another attempt may do better. An answer of 4xx to
// the tail of a blob says only that the registry can't continue.
func (u *upload) mayPass(ctx context.Context, f *fault) bool {
	switch {
	case f.status == 0:
		return ctx.Err() == nil && u.repo.host.transient(f.err)
	case u.repo.client.opts.Policy.Retryable(f.status):
		return true
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden,
		f.status == http.StatusRequestEntityTooLarge:
		return false
	case isGone(f.status), f.status == http.StatusRequestedRangeNotSatisfiable:
		return true // the session is gone, or elsewhere
	}
	return f.off > 0 && f.status < 500
}

// findOffset finds out where to go on: behind what the session has, or at the
// beginning of a new one. A registry that refuses what follows what it says it
// has is asked once more: it may still have been busy with what was cut.
func (u *upload) findOffset(ctx context.Context, f *fault) error {
	var off int64
	var location string
	err := errGone
	if !isGone(f.status) && u.repo.host.behaviour.resumes() && !u.rangeUnreliable {
		off, location, err = u.repo.status(ctx, u.session.location, u.sent())
	}
	passing := ctx.Err() == nil && httprange.Transient(err, true)
	switch {
	case errors.Is(err, errGone), err == nil && f.off > 0 && off == u.off && f.refused:
		u.loseSession(ctx, f)
		return nil
	case passing && u.repo.client.opts.Policy.Exhausted(u.tries.failures):
		f.err = err
		return u.exhausted(ctx, f)
	case passing:
		u.loseSession(ctx, f)
		return nil
	case err != nil:
		return err
	}
	u.moveTo(off, location)
	return nil
}

// loseSession gives a session up.
func (u *upload) loseSession(ctx context.Context, f *fault) {
	u.strategy = u.strategy.afterLoss(f)
	u.cancel(ctx)
}

// explain returns what an upload that is given up fails with.
func (u *upload) explain(f *fault) error {
	size := u.content.desc.Size
	err := u.repo.host.explain(f, size)
	if u.strategy.tooLarge != nil && f.chunk {
		err = fmt.Errorf("%w; and in chunks: %w", u.strategy.tooLarge, err)
	}
	if !f.source && f.status == http.StatusRequestEntityTooLarge && size >= smallestCut {
		err = hintToShard(err)
	}
	return err
}

// smallestCut is the size in bytes of a layer from which on it helps to make it
// smaller.
const smallestCut = 1 << 20

// exhausted gives an upload up after the last attempt.
func (u *upload) exhausted(ctx context.Context, f *fault) error {
	u.giveUp(ctx, f)
	return httprange.GaveUp(max(u.tries.failures, u.commits), u.explain(f))
}

// giveUp ends an upload that failed: it is cancelled, unless it is remembered and
// may go on some other time.
func (u *upload) giveUp(ctx context.Context, f *fault) {
	hopeless := f.refused && f.status != http.StatusUnauthorized && f.status != http.StatusForbidden
	if u.record.keeps() && !hopeless {
		return
	}
	u.cancel(ctx)
}
