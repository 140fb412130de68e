package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/carton-oci/carton-oci/pkg/registry"
)

// retries is what is known of the waits for another attempt: of many at once, as
// when a registry goes away, the last.
type retries struct {
	mu    sync.Mutex
	last  registry.Retry
	until time.Time // the end of its wait
	told  time.Time
}

const (
	// retryLeast is the shortest wait that is told in a line: a first retry is soon
	// over, and mostly helps.
	retryLeast = time.Second
	// retryEvery is the time between two lines at least.
	retryEvery = 3 * time.Second
)

// add notes a wait that begins.
func (r *retries) add(w registry.Retry, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.until) && w.Number < r.last.Number {
		return // of something else, which is better off
	}
	r.last, r.until = w, now.Add(w.Wait)
}

// waiting tells of the wait that goes on, in at most so many columns, "" where there is
// none. How often and how long stands first, so the end is cut.
func (r *retries) waiting(now time.Time, columns int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !now.Before(r.until) {
		return ""
	}
	return runewidth.Truncate(remark(retryText(r.last, r.until.Sub(now))), columns, "…")
}

// news tells of the last wait where that is due as a line, else "".
func (r *retries) news(now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.Wait < retryLeast || now.Sub(r.told) < retryEvery {
		return ""
	}
	r.told = now
	return retryText(r.last, r.last.Wait)
}

func retryText(w registry.Retry, left time.Duration) string {
	seconds := (left + time.Second - 1).Truncate(time.Second)
	return fmt.Sprintf("retry %d of %d in %s: %v", w.Number, w.Of, seconds, w.Err)
}
