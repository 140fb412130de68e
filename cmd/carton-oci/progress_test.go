package main

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

func TestTally(t *testing.T) {
	var count tally
	for i, step := range []struct {
		event       progress.Event
		done, total int64
	}{
		{progress.Event{Name: "a", State: progress.Started, Total: 100}, 0, 100},
		{progress.Event{Name: "a", State: progress.Moving, Done: 60, Total: 100}, 60, 100},
		{progress.Event{Name: "b", State: progress.Started, Total: -1}, 60, 100},
		{progress.Event{Name: "b", State: progress.Moving, Done: 5, Total: -1}, 65, 100},
		{progress.Event{Name: "a", State: progress.Retrying, Done: 20, Total: 100, Err: errors.New("cut")}, 25, 100},
		{progress.Event{Name: "a", State: progress.Finished, Done: 100, Total: 100}, 105, 100},
		{progress.Event{Name: "c", State: progress.Exists, Total: 50}, 155, 150},
		{progress.Event{Name: "d", State: progress.Mounted, Total: 50}, 205, 200},
		{progress.Event{Name: "b", State: progress.Finished, Done: 10, Total: 10}, 210, 210},
	} {
		count.add(step.event)
		if done, total := count.sum(); done != step.done || total != step.total {
			t.Errorf("step %d: got %d of %d, want %d of %d", i, done, total, step.done, step.total)
		}
	}
}

func TestLinesOfProgress(t *testing.T) {
	var b bytes.Buffer
	d := &display{}
	draw := d.lines(&b, "push")
	draw(false) // nothing is known yet
	d.report(progress.Event{Name: "a", State: progress.Moving, Done: 1_500_000, Total: 3_000_000})
	draw(false)
	draw(true) // what there is to say at the end is the command's result
	if got, want := b.String(), "push: 1.5 MB of 3.0 MB, 50 %\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is drawn leaves nothing behind, however often the end is said.
func TestBarEnds(t *testing.T) {
	var b bytes.Buffer
	d := startDisplay(&b, true, "pull")
	var senders sync.WaitGroup
	for i := range 8 {
		senders.Go(func() {
			name := strconv.Itoa(i)
			for done := range int64(1000) {
				d.report(progress.Event{Name: name, State: progress.Moving, Done: done, Total: 1000})
			}
			d.report(progress.Event{Name: name, State: progress.Finished, Done: 1000, Total: 1000})
		})
	}
	senders.Wait()
	d.stop()
	d.stop()
	if done, total := d.count.sum(); done != 8000 || total != 8000 {
		t.Errorf("got %d of %d, want 8000 of 8000", done, total)
	}
	after := b.Len()
	d.report(progress.Event{Name: "late", State: progress.Moving, Done: 1, Total: 2})
	if b.Len() != after {
		t.Error("a late event was drawn")
	}
	if strings.Contains(b.String(), "\n\n") {
		t.Errorf("got an empty line in %q", b.String())
	}
}
