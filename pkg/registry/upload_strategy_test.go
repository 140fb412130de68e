package registry

import (
	"errors"
	"net/http"
	"testing"
)

// TestStrategy: what follows what, at a registry of which nothing is known.
func TestStrategy(t *testing.T) {
	tooLarge := &fault{status: http.StatusRequestEntityTooLarge, err: errors.New("413")}
	tooLargeChunk := &fault{status: http.StatusRequestEntityTooLarge, chunk: true}
	noPatch := &fault{status: http.StatusMethodNotAllowed, chunk: true}
	cut, lostChunk := &fault{err: errors.New("reset")}, &fault{chunk: true}
	for name, c := range map[string]struct {
		size, chunk int64
		digestLast  bool
		faults      []*fault
		want        int64 // bytes in a chunk
		impossible  bool
	}{
		"one PUT":                        {size: gib},
		"one PUT is too large":           {size: gib, faults: []*fault{tooLarge}, want: 64 * mib},
		"and so is a chunk":              {size: gib, faults: []*fault{tooLarge, tooLargeChunk, tooLargeChunk}, want: 4 * mib},
		"and every chunk":                {size: gib, faults: []*fault{tooLarge, tooLargeChunk, tooLargeChunk, tooLargeChunk, tooLargeChunk}, want: mib},
		"of a small blob":                {size: mib, faults: []*fault{tooLarge}},
		"no chunks":                      {size: gib, chunk: mib, faults: []*fault{noPatch}},
		"no chunks, nor the whole":       {size: gib, chunk: mib, faults: []*fault{noPatch, tooLarge}},
		"the whole, nor any chunks":      {size: gib, faults: []*fault{tooLarge, noPatch}, want: 64 * mib},
		"two PUTs are cut":               {size: gib, faults: []*fault{cut, cut}, want: 64 * mib},
		"one PUT is cut":                 {size: gib, faults: []*fault{cut}},
		"two sessions of chunks":         {size: gib, chunk: mib, faults: []*fault{lostChunk, lostChunk}},
		"no chunks, without a digest":    {size: gib, chunk: mib, digestLast: true, faults: []*fault{noPatch}, want: mib, impossible: true},
		"lost chunks, without a digest":  {size: gib, chunk: mib, digestLast: true, faults: []*fault{lostChunk, lostChunk, lostChunk}, want: mib},
		"a lost end, without a digest":   {size: gib, chunk: mib, digestLast: true, faults: []*fault{{status: http.StatusNotFound, off: gib}}, want: mib, impossible: true},
		"a chunk is refused for a login": {size: gib, chunk: mib, faults: []*fault{{status: http.StatusUnauthorized, chunk: true, refused: true}}, want: mib},
	} {
		s := (&endpoint{}).strategyFor(c.size, c.chunk, c.digestLast)
		for _, f := range c.faults {
			next, changed := s.afterRefusal(f, 0)
			if !changed && f.status == 0 {
				next = next.afterLoss(f)
			}
			s = next
		}
		if s.chunk != c.want || s.impossible != c.impossible {
			t.Errorf("%s: got %d bytes in a chunk, impossible: %v; want %d, %v", name, s.chunk, s.impossible, c.want, c.impossible)
		}
	}
}
