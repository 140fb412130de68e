package registry

import (
	"cmp"
	"errors"
	"net/http"
	"sync"

	"github.com/carton-oci/carton-oci/internal/stall"
)

const (
	// firstChunk is the size of chunks for a registry that refuses a blob in one
	// piece and does not say how much it takes; the next are a quarter each. A blob
	// without a digest begins with it: what is refused of a larger chunk is read again.
	firstChunk = 64 * mib
	minChunk   = 1 * mib
	// wideChunk is the size of chunks for a registry that takes nearly anything.
	wideChunk = 1 * gib
	// enough times of the same say that it will not come otherwise.
	enough = 2
)

// strategy is how a blob's bytes are sent. [endpoint.strategyFor] chooses it, and
// afterRefusal and afterLoss say which one follows a failure; nothing else does.
type strategy struct {
	chunk      int64 // bytes in a chunk; 0: one PUT of the whole
	digestLast bool  // nobody knows the digest before the end, and a PUT names it first

	size     int64 // of the blob
	maxChunk int64 // as behaviour has it

	tooLarge     error // the 413 to a PUT of the whole: there is no way back to it
	chunksFailed bool  // they were refused or lost: there is no way back to them
	impossible   bool  // chunks were refused, and there is no other way
	lostPuts     int   // that broke off, and nothing of them arrived
	lostChunks   int   // sessions that were lost while chunks were sent
}

// strategyFor returns how a blob is sent at first. chunk is the size of chunks
// that the caller wants, 0 for no wish.
func (h *endpoint) strategyFor(size, chunk int64, digestLast bool) strategy {
	h.learnt.mu.Lock()
	defer h.learnt.mu.Unlock()
	b := &h.behaviour
	s := strategy{size: size, maxChunk: b.maxChunk, digestLast: digestLast}
	switch s.chunk = max(chunk, 0); {
	case b.maxChunk == noChunks, h.learnt.noChunks:
		s.chunk = 0
		return s
	case h.learnt.chunk > 0 && (s.chunk == 0 || s.chunk > h.learnt.chunk):
		s.chunk = h.learnt.chunk
	case s.chunk == 0 && b.maxPut > 0 && size > b.maxPut:
		s.chunk = wideChunk
	}
	if b.maxChunk > 0 {
		s.chunk = min(s.chunk, b.maxChunk)
	}
	return s
}

// afterRefusal returns the strategy that follows a request that was refused, and
// whether it is another one: chunks for one PUT, smaller chunks, or one PUT for
// chunks. least is what the session wants a chunk to have.
func (s strategy) afterRefusal(f *fault, least int64) (strategy, bool) {
	switch tooLarge := f.status == http.StatusRequestEntityTooLarge; {
	case f.chunk && tooLarge:
		if s.chunk/4 < max(minChunk, least) {
			return s, false
		}
		s.chunk /= 4
		return s, true
	case f.chunk && f.takesNone(), s.digestLast && !f.chunk && f.status == http.StatusNotFound:
		s.impossible = s.digestLast
		return s.inOnePut()
	case tooLarge && s.size-f.off > 1: // one byte can't be cut
		next, ok := s.inChunks()
		if ok {
			next.tooLarge = f.err
		}
		return next, ok
	}
	return s, false
}

// afterLoss returns the strategy that follows a lost session. Two that were lost one
// way have the blob sent the other: PUTs may break off because they are refused
// before they are read, and nobody hears the 413; chunks may find their session gone.
func (s strategy) afterLoss(f *fault) strategy {
	switch {
	case f.chunk:
		if s.lostChunks++; s.lostChunks >= enough {
			s, _ = s.inOnePut()
		}
	case f.status == 0 && f.off == 0 && !errors.Is(f.err, stall.ErrStalled):
		if s.lostPuts++; s.lostPuts == enough {
			s, _ = s.inChunks()
		}
	}
	return s
}

// inChunks turns to chunks, if there can be any.
func (s strategy) inChunks() (strategy, bool) {
	if s.chunksFailed || s.maxChunk == noChunks {
		return s, false
	}
	chunk := cmp.Or(s.chunk, firstChunk)
	for chunk >= s.size {
		chunk /= 4
	}
	if chunk < minChunk {
		return s, false
	}
	if s.maxChunk > 0 {
		chunk = min(chunk, s.maxChunk)
	}
	s.chunk = chunk
	return s, true
}

// inOnePut turns to one PUT, unless that was refused or can't be.
func (s strategy) inOnePut() (strategy, bool) {
	if s.tooLarge != nil || s.digestLast {
		return s, false
	}
	s.chunk, s.chunksFailed = 0, true
	return s, true
}

// chunkEnd returns where the chunk that begins at off ends, 0 where what is left
// goes with the PUT that completes the blob. A chunk is never a single byte: a Range
// of "0-0" may be one byte or none. least is what the session wants a chunk to have.
func (s strategy) chunkEnd(off, least int64) int64 {
	left := s.size - off
	least = max(least, 2)
	chunk := max(s.chunk, least)
	if s.chunk == 0 || left <= 1 || off == 0 && left <= chunk && !s.digestLast {
		return 0
	}
	end := off + min(chunk, left)
	switch {
	case s.size-end != 1:
	case chunk > least:
		end--
	default:
		end++
	}
	return end
}

// learnt is what the answers of a registry have told of how it takes blobs, so
// that not every blob has to find it out.
type learnt struct {
	mu       sync.Mutex
	chunk    int64 // 0: it takes a blob in one piece, as far as is known
	noChunks bool
}

// learn notes the strategy that a refusal has led to.
func (h *endpoint) learn(s strategy) {
	h.learnt.mu.Lock()
	defer h.learnt.mu.Unlock()
	if s.chunk == 0 {
		h.learnt.noChunks = true
	} else if h.learnt.chunk == 0 || s.chunk < h.learnt.chunk {
		h.learnt.chunk = s.chunk
	}
}
