package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// tookChunk judges the success of a chunk, and moves behind it. nil is success.
func (u *upload) tookChunk(ctx context.Context, resp *http.Response, end int64, f *fault) *fault {
	location, err := u.repo.nextLocation(resp, u.session.location)
	if err != nil {
		f.err = err
		return f
	}
	got, ok := parseStatusRange(resp.Header.Get("Range"))
	if ok && f.complete && (got == end || got == end+1) || u.rangeUnreliable ||
		u.repo.host.behaviour.rangeNeverAdvances {
		u.moveTo(end, location)
		return nil
	}
	return u.queryOffset(ctx, location, end, f)
}

// nextLocation returns where a session goes on after an answer: at its Location, or
// where there is none, at the one that was.
func (r *Repository) nextLocation(resp *http.Response, was string) (string, error) {
	if resp.Header.Get("Location") == "" {
		return was, nil
	}
	asked, err := url.Parse(was)
	if err != nil {
		return "", err
	}
	return r.location(resp, asked)
}

// queryOffset asks the registry what it has: its answer to a chunk did not say, or said
// something else than was sent. One that takes a chunk, and says twice that
// nothing of it has come, is not asked again: the chunk counts as taken, and the
// digest has the last word.
func (u *upload) queryOffset(ctx context.Context, location string, end int64, f *fault) *fault {
	off, moved, err := u.repo.status(ctx, location, u.sent())
	switch {
	case err == nil && off > u.off && off <= end:
		kept, of, failures := off-u.off, end-u.off, u.tries.failures
		u.moveTo(off, moved)
		if kept >= of/4 {
			return nil
		}
		// A crumb of every chunk is no progress: the rest is sent again each time.
		u.tries.failures = failures
		if u.tries.spent(u.repo.client.opts.Policy) {
			f.err = fmt.Errorf("%s kept %d bytes of a chunk of %d", u.repo.host.host, kept, of)
			return f
		}
		return nil
	case err != nil && !errors.Is(err, errGone):
		f.err = err
		return f
	case !f.complete:
		f.err = fmt.Errorf("%s took a chunk before it had come: %w", u.repo.host.host, errGone)
		return f
	}
	u.rangeUnreliable = true
	u.moveTo(end, location)
	return nil
}
