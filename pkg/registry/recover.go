package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/stall"
)

// fault is how a request failed.
type fault struct {
	err      error
	header   http.Header   // of the answer, nil where there was none
	status   int           // of the answer, 0 where there was none
	source   bool          // err is the source's
	complete bool          // every byte of the request went out
	patch    bool          // the request was a chunk
	took     time.Duration // of the request
}

// refused reports whether the registry would not have the request, and may say
// the same again.
func (f *fault) refused(p Policy) bool {
	return f.status >= 400 && f.status < 500 && !p.Retryable(f.status)
}

// recover decides what follows a failed request, and waits for it. It returns
// true where the blob has arrived after all, and the error to give up with.
func (u *upload) recover(ctx context.Context, f *fault) (arrived bool, err error) {
	policy := u.repo.client.opts.Policy
	if ctx.Err() != nil {
		return false, u.interrupted(ctx)
	}
	tail := u.off > 0
	if stalled := (*stall.Error)(nil); errors.As(f.err, &stalled) && stalled.Commit() {
		u.commits++ // each may take a quarter of an hour
	}
	switch {
	case f.source:
		// Of a source that may do better, what was sent may be wrong as well.
		u.abandon(ctx)
		return false, f.err
	case u.otherwise(f):
		u.abandon(ctx)
		return false, nil
	case u.noStream, !u.mayPass(ctx, f, tail):
		u.giveUp(ctx, f)
		return false, u.explain(f)
	case f.complete && !f.patch && (f.status == 0 || f.status >= 500):
		// The registry may have finished, and only its answer was lost.
		size, err := u.repo.Stat(ctx, u.content.desc.Digest)
		if err == nil && size == u.content.desc.Size {
			u.record.clear()
			return true, nil
		}
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
	return false, u.where(ctx, f, tail)
}

// interrupted ends an upload that its caller gave up. A session that is remembered
// stays, for who goes on with it; any other is of no use to anybody.
func (u *upload) interrupted(ctx context.Context) error {
	if !u.record.keeps() {
		u.abandon(ctx)
	}
	return context.Cause(ctx)
}

// mayPass reports whether another attempt may do better. An answer of 4xx to
// the tail of a blob says only that the registry can't continue.
func (u *upload) mayPass(ctx context.Context, f *fault, tail bool) bool {
	switch {
	case f.status == 0:
		return transient(ctx, f.err, u.repo.host.reached.Load())
	case u.repo.client.opts.Policy.Retryable(f.status):
		return true
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden, f.status == http.StatusRequestEntityTooLarge:
		return false
	case f.status == http.StatusNotFound, f.status == http.StatusGone, f.status == http.StatusRequestedRangeNotSatisfiable:
		return true // the session is gone, or elsewhere
	}
	return tail && f.status < 500
}

// where finds out where to go on: behind what the session has, or at the
// beginning of a new one. A registry that refuses what follows what it says it
// has is asked once more: it may still have been busy with what was cut.
func (u *upload) where(ctx context.Context, f *fault, tail bool) error {
	b := &u.repo.host.behaviour
	if f.status == http.StatusNotFound || f.status == http.StatusGone || !b.resumes() || u.deaf {
		u.lose(ctx, f)
		return nil
	}
	off, newer, err := u.repo.status(ctx, u.session.location, u.sent())
	switch {
	case errors.Is(err, errGone):
		u.lose(ctx, f)
		return nil
	case err != nil && transient(ctx, err, true) && u.repo.client.opts.Policy.Exhausted(u.tries.failures):
		f.err = err
		return u.exhausted(ctx, f)
	case err != nil && transient(ctx, err, true):
		u.lose(ctx, f)
		return nil
	case err != nil:
		return err
	case tail && off == u.off && f.refused(u.repo.client.opts.Policy):
		u.lose(ctx, f)
		return nil
	}
	u.moveTo(off, newer)
	return nil
}

// moveTo goes on at an offset of the session.
func (u *upload) moveTo(off int64, location string) {
	if off > u.best {
		// Progress; but not what a registry takes again and again and never keeps.
		u.meter.Add(int(off-u.best), 0)
		if u.best = off; u.meter.Progressed() {
			u.tries.failures = 0
		}
	}
	u.off = off
	if location != u.session.location {
		u.session.location = location
		u.record.save(u.session)
	}
}

// sent returns how much the registry can have: no more than this run has read,
// but of an earlier run's session any part.
func (u *upload) sent() int64 {
	if u.resumed {
		return u.content.desc.Size
	}
	return u.trail.reached()
}

// lose gives a session up. Two that were lost one way have the blob sent the
// other: PUTs may break off because they are refused before they are read, and
// nobody hears the 413; chunks may find their session gone.
func (u *upload) lose(ctx context.Context, f *fault) {
	switch {
	case f.patch:
		if u.losses++; u.losses >= enough {
			u.whole()
		}
	case f.status == 0 && u.off == 0 && !errors.Is(f.err, stall.ErrStalled):
		if u.cuts++; u.cuts == enough {
			u.pieces()
		}
	}
	u.abandon(ctx)
}

// explain returns what an upload that is given up fails with.
func (u *upload) explain(f *fault) error {
	err := u.repo.host.explain(f, u.content.desc.Size)
	if u.tooLarge != nil && f.patch {
		return fmt.Errorf("%w; and in chunks: %w", u.tooLarge, err)
	}
	return err
}

// exhausted gives an upload up after the last attempt.
func (u *upload) exhausted(ctx context.Context, f *fault) error {
	u.giveUp(ctx, f)
	return httprange.GaveUp(max(u.tries.failures, u.commits), u.explain(f))
}

// giveUp ends an upload that failed: it is cancelled, unless it is remembered and
// may go on some other time.
func (u *upload) giveUp(ctx context.Context, f *fault) {
	hopeless := f.refused(u.repo.client.opts.Policy) &&
		f.status != http.StatusUnauthorized && f.status != http.StatusForbidden
	if u.record.keeps() && !hopeless {
		return
	}
	u.abandon(ctx)
}
