package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Push stores a blob. It is one PUT of the whole where nothing goes wrong; what
// broke off goes on where the registry says it stopped, and where it can't say
// that, in a new session from the beginning. Each byte is read and hashed once
// unless an attempt fails. An upload is completed only by bytes of the digest
// and size that desc promises; others are layout.ErrDigest, and the upload is
// cancelled. So it is where open or what it opened fails; whoever knows that it
// may do better pushes again.
func (r *Repository) Push(ctx context.Context, desc ocispec.Descriptor, open layout.Opener, sent func(off int64)) error {
	if err := checkDigest(desc.Digest); err != nil {
		return fmt.Errorf("blob: %w: %w", err, layout.ErrFormat)
	}
	if desc.Size < 0 {
		return fmt.Errorf("blob %s: got a size of %d, want 0 or more: %w", desc.Digest, desc.Size, layout.ErrFormat)
	}
	u := &upload{repo: r, content: &content{desc: desc, open: open, sent: sent}}
	if err := u.run(r.push(ctx)); err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	return nil
}

// upload is one blob's way up the ladder: a session, a PUT, and after a failure
// the session's status and the tail, or a new session.
type upload struct {
	repo    *Repository
	content *content

	location string // "" where there is no session
	off      int64  // how much of the blob the session has
	trail    *trail
	best     int64 // the largest off of any session
	failures int   // in a row, without progress
}

func (u *upload) run(ctx context.Context) error {
	for {
		if u.location == "" {
			location, err := u.repo.openSession(ctx, u.content.desc.Digest)
			if err != nil {
				return err
			}
			u.location, u.off, u.trail = location, 0, newTrail(u.content.desc.Size)
		}
		f := u.put(ctx)
		if f == nil {
			return nil
		}
		if arrived, err := u.recover(ctx, f); arrived || err != nil {
			return err
		}
	}
}

// fault is how an attempt failed.
type fault struct {
	err      error
	header   http.Header // of the answer, nil where there was none
	status   int         // of the answer, 0 where there was none
	source   bool        // err is the source's
	complete bool        // every byte went out
}

// recover decides what follows a failed attempt, and waits for it. It returns
// true where the blob has arrived after all, and the error to give up with.
func (u *upload) recover(ctx context.Context, f *fault) (arrived bool, err error) {
	policy := u.repo.client.opts.Policy
	if ctx.Err() != nil {
		return false, context.Cause(ctx) // the session stays, for who goes on with it
	}
	resumed := u.off > 0
	switch {
	case f.source, !u.mayPass(ctx, f, resumed):
		// Of a source that may do better, what was sent may be wrong as well.
		u.abandon(ctx)
		return false, f.err
	case f.complete && (f.status == 0 || f.status >= 500):
		// The registry may have finished, and only its answer was lost.
		size, err := u.repo.Stat(ctx, u.content.desc.Digest)
		if err == nil && size == u.content.desc.Size {
			return true, nil
		}
	}
	u.failures++
	if policy.Exhausted(u.failures) {
		u.abandon(ctx)
		return false, fmt.Errorf("gave up after %d attempts: %w", u.failures, f.err)
	}
	delay, err := policy.Delay(u.failures, f.header)
	if err != nil {
		u.abandon(ctx)
		return false, fmt.Errorf("%w: %w", f.err, err)
	}
	if err := policy.Sleep(ctx, delay); err != nil {
		return false, err
	}
	return false, u.where(ctx, f, resumed)
}

// mayPass reports whether another attempt may do better. An answer of 4xx to
// the tail of a blob says only that the registry can't continue.
func (u *upload) mayPass(ctx context.Context, f *fault, resumed bool) bool {
	switch {
	case f.status == 0:
		return transient(ctx, f.err, u.repo.host.reached.Load())
	case u.repo.client.opts.Policy.Retryable(f.status):
		return true
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden:
		return false
	case f.status == http.StatusNotFound, f.status == http.StatusGone, f.status == http.StatusRequestedRangeNotSatisfiable:
		return true // the session is gone, or elsewhere
	}
	return resumed && f.status < 500
}

// where finds out where to go on: behind what the session has, or at the
// beginning of a new one.
func (u *upload) where(ctx context.Context, f *fault, resumed bool) error {
	refused := f.status >= 400 && f.status < 500 && !u.repo.client.opts.Policy.Retryable(f.status)
	if resumed && refused || f.status == http.StatusNotFound || !hostOf(u.repo.host.host).resumes {
		u.abandon(ctx)
		return nil
	}
	off, newer, err := u.repo.status(ctx, u.location, u.trail.reached())
	if errors.Is(err, errGone) || err != nil && transient(ctx, err, true) {
		u.abandon(ctx)
		return nil
	}
	if err != nil {
		return err
	}
	if off > u.best {
		// Progress; but not what a registry takes again and again and never keeps.
		u.best, u.failures = off, 0
	}
	u.location, u.off = newer, off
	return nil
}

// abandon cancels the session; the next attempt opens another.
func (u *upload) abandon(ctx context.Context) {
	if u.location != "" {
		u.repo.cancelSession(ctx, u.location)
	}
	u.location = ""
}

// put sends the blob from u.off to its end, and completes it. nil is success.
func (u *upload) put(ctx context.Context) *fault {
	desc := u.content.desc
	dog := newWatchdog(ctx, u.repo.client.opts.stall())
	defer dog.end()
	req, bodies, err := u.request(dog)
	if err != nil {
		return &fault{err: err, source: bodies.failed()}
	}
	dog.resume(desc.Size == u.off)
	resp, err := dog.answer(u.repo.blob.Do(req))
	complete, own := bodies.end()
	switch {
	case own != nil:
		if resp != nil {
			resp.Body.Close()
		}
		return &fault{err: own, source: true}
	case err != nil:
		return &fault{err: dog.explain(u.repo.host.requestError(err)), complete: complete}
	}
	u.repo.host.reached.Store(true)
	switch resp.StatusCode {
	case http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		defer resp.Body.Close()
		if got := resp.Header.Get(digestHeader); got != "" && got != desc.Digest.String() {
			return &fault{err: fmt.Errorf("%s stored %q: %w", u.repo.host.host, got, layout.ErrDigest), status: http.StatusBadRequest}
		}
		return nil
	}
	return &fault{err: u.repo.host.answerError(resp), status: resp.StatusCode, header: resp.Header, complete: complete}
}

// request makes the PUT. Its body can be had again, so that a challenge in the
// middle of an upload is answered and not final.
func (u *upload) request(dog *watchdog) (*http.Request, *bodies, error) {
	desc := u.content.desc
	bodies := &bodies{make: func() *body { return newBody(dog.ctx, u.content, u.trail, u.off, dog) }}
	loc, err := url.Parse(u.location)
	if err != nil {
		return nil, bodies, err
	}
	q := loc.Query()
	q.Set("digest", desc.Digest.String())
	loc.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(dog.ctx, http.MethodPut, loc.String(), http.NoBody)
	if err != nil {
		return nil, bodies, err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	if u.off > 0 && u.off < desc.Size {
		req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", u.off, desc.Size-1))
	}
	if u.off == desc.Size {
		// Nothing is left to be withheld until the digest is known to be right.
		b := bodies.next()
		_, err := io.Copy(io.Discard, b)
		return req, bodies, err
	}
	req.ContentLength = desc.Size - u.off
	req.Body = bodies.next()
	req.GetBody = func() (io.ReadCloser, error) { return bodies.next(), nil }
	return req, bodies, nil
}

// bodies are the bodies that one request has had: one more for every time that
// it is sent again with credentials.
type bodies struct {
	make func() *body

	mu   sync.Mutex
	last *body
}

func (b *bodies) next() *body {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		_ = b.last.Close()
	}
	b.last = b.make()
	return b.last
}

// end closes the last body and says how it came out.
func (b *bodies) end() (complete bool, own error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		return false, nil
	}
	_ = b.last.Close()
	return b.last.outcome()
}

func (b *bodies) failed() bool {
	_, own := b.end()
	return own != nil
}
