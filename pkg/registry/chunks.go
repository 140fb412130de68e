package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

const (
	// firstChunk is the size of chunks for a registry that refuses a blob in one
	// piece and does not say how much it takes; the next are a quarter each.
	firstChunk = 64 * mib
	minChunk   = 1 * mib
	// wideChunk is the size of chunks for a registry that takes nearly anything.
	wideChunk = 1 * gib
	// enough times of the same say that it will not come otherwise.
	enough = 2
)

// learnt is what the answers of a registry have told of how it takes blobs, so
// that not every blob has to find it out.
type learnt struct {
	mu      sync.Mutex
	chunk   int64 // 0: it takes a blob in one piece, as far as is known
	noPatch bool
}

// chunkFor returns the size of the chunks that a blob is sent in, 0 for one
// piece. asked is what the caller wants, 0 for nothing.
func (h *endpoint) chunkFor(size, asked int64) int64 {
	h.learnt.mu.Lock()
	defer h.learnt.mu.Unlock()
	b, chunk := &h.behaviour, max(asked, 0)
	switch {
	case b.patch == noPatch, h.learnt.noPatch:
		return 0
	case h.learnt.chunk > 0 && (chunk == 0 || chunk > h.learnt.chunk):
		chunk = h.learnt.chunk
	case chunk == 0 && b.whole > 0 && size > b.whole:
		chunk = wideChunk
	}
	if b.patch > 0 {
		chunk = min(chunk, b.patch)
	}
	return chunk
}

// learn notes what was found out: chunks of some size instead of one piece, or,
// of 0, one piece instead of chunks.
func (h *endpoint) learn(chunk int64) {
	h.learnt.mu.Lock()
	defer h.learnt.mu.Unlock()
	if chunk == 0 {
		h.learnt.noPatch = true
	} else if h.learnt.chunk == 0 || chunk < h.learnt.chunk {
		h.learnt.chunk = chunk
	}
}

// chunkEnd returns where the next chunk ends, 0 where what is left goes with the
// PUT that completes the blob. A chunk is never a single byte: a Range of "0-0"
// may be one byte or none.
func (u *upload) chunkEnd() int64 {
	left := u.content.desc.Size - u.off
	least := max(u.session.least, 2)
	chunk := max(u.chunk, least)
	if u.chunk == 0 || left <= 1 || u.off == 0 && left <= chunk && !u.content.learn {
		return 0
	}
	end := u.off + min(chunk, left)
	switch {
	case u.content.desc.Size-end != 1:
	case chunk > least:
		end--
	default:
		end++
	}
	return end
}

// tookChunk judges the answer to a chunk, and moves behind it. nil is success.
func (u *upload) tookChunk(ctx context.Context, resp *http.Response, end int64, f *fault) *fault {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
	default:
		f.status, f.header = resp.StatusCode, resp.Header
		f.err = u.repo.host.answerError(resp)
		return f
	}
	defer resp.Body.Close()
	location, err := u.newer(resp)
	if err != nil {
		f.err = err
		return f
	}
	got, ok := parseStatusRange(resp.Header.Get("Range"))
	if ok && f.complete && (got == end || got == end+1) || u.deaf || u.repo.host.behaviour.stuck {
		u.moveTo(end, location)
		return nil
	}
	return u.doubt(ctx, location, end, f)
}

// newer returns where the session goes on after an answer: at its Location, or
// where there is none, at the one that was.
func (u *upload) newer(resp *http.Response) (string, error) {
	was := u.session.location
	if resp.Header.Get("Location") == "" {
		return was, nil
	}
	asked, err := url.Parse(was)
	if err != nil {
		return "", err
	}
	return u.repo.location(resp, asked)
}

// doubt asks the registry what it has: its answer to a chunk did not say, or said
// something else than was sent. One that takes a chunk, and says twice that
// nothing of it has come, is not asked again: the chunk counts as taken, and the
// digest has the last word.
func (u *upload) doubt(ctx context.Context, location string, end int64, f *fault) *fault {
	off, newer, err := u.repo.status(ctx, location, u.sent())
	switch {
	case err == nil && off > u.off && off <= end:
		kept, of, failures := off-u.off, end-u.off, u.tries.failures
		u.moveTo(off, newer)
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
	u.deaf = true
	u.moveTo(end, location)
	return nil
}

// otherwise reports whether a blob that was refused can be sent in another way,
// and chooses that: chunks for one piece, smaller chunks, or one piece for chunks.
func (u *upload) otherwise(f *fault) bool {
	tooLarge := f.status == http.StatusRequestEntityTooLarge
	u.noStream = u.content.learn && (f.patch && !tooLarge && u.takesNone(f) || !f.patch && f.status == http.StatusNotFound)
	switch {
	case f.patch && tooLarge:
		if u.chunk/4 < max(minChunk, u.session.least) {
			return false
		}
		u.chunk /= 4
		u.repo.host.learn(u.chunk)
		return true
	case f.patch && u.takesNone(f) && u.whole():
		u.repo.host.learn(0)
		return true
	case tooLarge && u.content.desc.Size-u.off > 1 && u.pieces(): // one byte can't be cut
		u.tooLarge = f.err
		u.repo.host.learn(u.chunk)
		return true
	}
	return false
}

// takesNone reports whether a chunk was refused because it is one.
func (u *upload) takesNone(f *fault) bool {
	switch f.status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return false
	}
	return u.off == 0 && f.refused(u.repo.client.opts.Policy)
}

// pieces turns to chunks, if there can be any.
func (u *upload) pieces() bool {
	b := &u.repo.host.behaviour
	if u.noChunks || b.patch == noPatch {
		return false
	}
	chunk := u.chunk
	if chunk == 0 {
		chunk = firstChunk
	}
	for chunk >= u.content.desc.Size {
		chunk /= 4
	}
	if chunk < minChunk {
		return false
	}
	if b.patch > 0 {
		chunk = min(chunk, b.patch)
	}
	u.chunk = chunk
	return true
}

// whole turns to one piece, unless that was refused, or can't be because a PUT
// names the digest before the bytes.
func (u *upload) whole() bool {
	if u.tooLarge != nil || u.content.learn {
		return false
	}
	u.chunk, u.noChunks = 0, true
	return true
}
