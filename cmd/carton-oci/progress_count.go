package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// counter adds up the events of many transfers.
type counter struct {
	mu        sync.Mutex
	transfers map[string]*transfer
	moving    map[string]*transfer // those of them whose bytes are on the way
	sums
}

// transfer is what is known of one transfer.
type transfer struct {
	name        string
	number      int // in order of appearance
	done, total int64
	note        string // what is odd about it, "" for nothing
}

// sums are of all transfers, in bytes where nothing else is said.
type sums struct {
	done, total int64
	moved       int64 // through in this run; more than done where attempts failed
	resumed     int64 // through in an earlier run
	exist       int   // transfers that were not needed
	mounted     int   // transfers that the registry did by itself
}

func (t *counter) add(e progress.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.transfers == nil {
		t.transfers, t.moving = map[string]*transfer{}, map[string]*transfer{}
	}
	tr := t.transfers[e.Name]
	if tr == nil {
		tr = &transfer{name: e.Name, number: len(t.transfers)}
		t.transfers[e.Name] = tr
	}
	if e.Total >= 0 {
		t.total += e.Total - tr.total
		tr.total = e.Total
	}
	done := e.Done
	switch e.State {
	case progress.Started, progress.Retrying:
	case progress.Moving:
		t.moving[e.Name] = tr
		t.moved += max(0, done-tr.done)
	case progress.Resumed:
		tr.note = "resumed"
		t.resumed += done
	case progress.Exists:
		t.exist++
		done = tr.total
	case progress.Mounted:
		t.mounted++
		done = tr.total
	case progress.Finished:
		delete(t.moving, e.Name)
		done = tr.total
		t.moved += max(0, done-tr.done)
	}
	t.done += done - tr.done
	tr.done = done
}

// sum returns the sums.
func (t *counter) sum() sums {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sums
}

// underWay returns the transfers whose bytes are on the way, at most n, those
// that began first.
func (t *counter) underWay(n int) []transfer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []transfer
	for _, tr := range t.moving {
		list = append(list, *tr)
	}
	slices.SortFunc(list, func(a, b transfer) int { return cmp.Compare(a.number, b.number) })
	return list[:min(n, len(list))]
}

// besides says what need not travel, "" for nothing.
func (s sums) besides() string {
	var parts []string
	if s.resumed > 0 {
		parts = append(parts, errtext.Size(s.resumed)+" resumed")
	}
	if s.exist > 0 {
		parts = append(parts, fmt.Sprintf("%d exist", s.exist))
	}
	if s.mounted > 0 {
		parts = append(parts, fmt.Sprintf("%d mounted", s.mounted))
	}
	return strings.Join(parts, ", ")
}
