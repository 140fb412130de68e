package main

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/mattn/go-runewidth"
)

func TestTally(t *testing.T) {
	var count tally
	for i, step := range []struct {
		event progress.Event
		want  sums
	}{
		{progress.Event{Name: "a", State: progress.Started, Total: 100}, sums{total: 100}},
		{progress.Event{Name: "a", State: progress.Resumed, Done: 20, Total: 100}, sums{done: 20, total: 100, resumed: 20}},
		{progress.Event{Name: "a", State: progress.Moving, Done: 60, Total: 100}, sums{done: 60, total: 100, moved: 40, resumed: 20}},
		{progress.Event{Name: "b", State: progress.Started, Total: -1}, sums{done: 60, total: 100, moved: 40, resumed: 20}},
		{progress.Event{Name: "b", State: progress.Moving, Done: 5, Total: -1}, sums{done: 65, total: 100, moved: 45, resumed: 20}},
		{progress.Event{Name: "a", State: progress.Retrying, Done: 50, Total: 100, Err: errors.New("cut")}, sums{done: 55, total: 100, moved: 45, resumed: 20}},
		{progress.Event{Name: "a", State: progress.Finished, Done: 100, Total: 100}, sums{done: 105, total: 100, moved: 95, resumed: 20}},
		{progress.Event{Name: "c", State: progress.Exists, Total: 50}, sums{done: 155, total: 150, moved: 95, resumed: 20, exist: 1}},
		{progress.Event{Name: "d", State: progress.Mounted, Total: 50}, sums{done: 205, total: 200, moved: 95, resumed: 20, exist: 1, mounted: 1}},
		{progress.Event{Name: "b", State: progress.Finished, Done: 10, Total: 10}, sums{done: 210, total: 210, moved: 100, resumed: 20, exist: 1, mounted: 1}},
	} {
		count.add(step.event)
		if got := count.sum(); got != step.want {
			t.Errorf("step %d: got %+v, want %+v", i, got, step.want)
		}
	}
}

func TestWhatNeedNotTravelIsSaid(t *testing.T) {
	for want, s := range map[string]sums{
		"":                                   {done: 1, total: 2},
		"3 exist":                            {exist: 3},
		"1.5 MB resumed, 1 exist, 2 mounted": {exist: 1, mounted: 2, resumed: 1_500_000},
	} {
		if got := s.besides(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestUnderWayIsWhatMoves(t *testing.T) {
	var count tally
	for i := range 10_000 {
		name := strconv.Itoa(i)
		count.add(progress.Event{Name: name, State: progress.Started, Total: 1})
		count.add(progress.Event{Name: name, State: progress.Moving, Total: 1})
		if i%1000 != 500 {
			count.add(progress.Event{Name: name, State: progress.Finished, Done: 1, Total: 1})
		}
	}
	var got []string
	for _, tr := range count.underWay(3) {
		got = append(got, tr.name)
	}
	if want := []string{"500", "1500", "2500"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want the first three that move: %q", got, want)
	}
	if n := len(count.underWay(100)); n != 10 {
		t.Errorf("got %d, want 10 that move", n)
	}
}

func TestPaceForgets(t *testing.T) {
	var p pace
	start := time.Unix(1_000_000, 0)
	if got := p.rate(start, 0); got != 0 {
		t.Errorf("after one sample: got %v, want 0", got)
	}
	for i := range 30 { // 1 MB/s, then nothing
		p.rate(start.Add(time.Duration(i)*time.Second), int64(i)*1_000_000)
	}
	if got := p.rate(start.Add(30*time.Second), 30_000_000); got != 1_000_000 {
		t.Errorf("got %v bytes a second, want 1,000,000", got)
	}
	if n := len(p.samples); n > 13 {
		t.Errorf("%d samples are kept", n)
	}
	for i := range 30 {
		p.rate(start.Add(time.Duration(31+i)*time.Second), 30_000_000)
	}
	if got := p.rate(start.Add(61*time.Second), 30_000_000); got != 0 {
		t.Errorf("nothing moves: got %v bytes a second", got)
	}
}

func TestSpeed(t *testing.T) {
	s := sums{done: 500_000_000, total: 2_000_000_000}
	for want, rate := range map[string]float64{
		"":                         0,
		"120 MB/s, 12s left":       120e6,
		"1.0 kB/s, 416h40m0s left": 1000,
	} {
		if got := s.speed(rate); got != want {
			t.Errorf("at %v: got %q, want %q", rate, got, want)
		}
	}
	if got := (sums{done: 2, total: 2}).speed(1000); got != "1.0 kB/s" {
		t.Errorf("at the end: got %q", got)
	}
}

func TestLinesOfProgress(t *testing.T) {
	var b bytes.Buffer
	d := &display{}
	draw := d.lines(&b, "push")
	draw(false) // nothing is known yet
	d.report(progress.Event{Name: "a", State: progress.Resumed, Done: 1_500_000, Total: 3_000_000})
	draw(false)
	d.report(progress.Event{Name: "b", State: progress.Exists, Total: 1_000_000})
	draw(false)
	draw(true) // what there is to say at the end is the command's result
	want := "push: 1.5 MB of 3.0 MB, 50 %, 1.5 MB resumed\npush: 2.5 MB of 4.0 MB, 62 %, 1.5 MB resumed, 1 exist\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"model/a.bin", 11, "model/a.bin"},
		{"model/a.bin", 10, "…del/a.bin"},
		{"model/模型.bin", 10, "…/模型.bin"},
	} {
		got := shorten(c.name, c.width)
		if got != c.want || runewidth.StringWidth(got) > c.width {
			t.Errorf("%q in %d columns: got %q, want %q", c.name, c.width, got, c.want)
		}
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
	if s := d.count.sum(); s.done != 8000 || s.total != 8000 {
		t.Errorf("got %d of %d, want 8000 of 8000", s.done, s.total)
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
