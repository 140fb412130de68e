package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

func TestCounter(t *testing.T) {
	var count counter
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
	var count counter
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

func TestMeterForgets(t *testing.T) {
	var m meter
	start := time.Unix(1_000_000, 0)
	if got := m.rate(start, 0); got != 0 {
		t.Errorf("after one sample: got %v, want 0", got)
	}
	for i := range 30 { // 1 MB/s, then nothing
		m.rate(start.Add(time.Duration(i)*time.Second), int64(i)*1_000_000)
	}
	if got := m.rate(start.Add(30*time.Second), 30_000_000); got != 1_000_000 {
		t.Errorf("got %v bytes a second, want 1,000,000", got)
	}
	if n := len(m.samples); n > 13 {
		t.Errorf("%d samples are kept", n)
	}
	for i := range 30 {
		m.rate(start.Add(time.Duration(31+i)*time.Second), 30_000_000)
	}
	if got := m.rate(start.Add(61*time.Second), 30_000_000); got != 0 {
		t.Errorf("nothing moves: got %v bytes a second", got)
	}
}

func TestSpeedAndWhatIsLeft(t *testing.T) {
	s := sums{done: 500_000_000, total: 2_000_000_000}
	for rate, want := range map[float64][2]string{
		0: {"", ""}, 120e6: {"120 MB/s", "12s left"}, 1000: {"1.0 kB/s", "416h40m0s left"},
	} {
		if got := [2]string{speed(rate), timeLeft(s.done, s.total, rate)}; got != want {
			t.Errorf("at %v: got %q, want %q", rate, got, want)
		}
	}
	if got := timeLeft(2, 2, 1000); got != "" {
		t.Errorf("at the end: got %q", got)
	}
}

func TestLinesOfProgress(t *testing.T) {
	var b bytes.Buffer
	d := &display{out: &b, verb: "push"}
	d.show() // nothing is known yet
	d.report(progress.Event{Name: "a", State: progress.Resumed, Done: 1_500_000, Total: 3_000_000})
	d.show()
	d.report(progress.Event{Name: "b", State: progress.Exists, Total: 1_000_000})
	d.show()
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
		{"model/a.bin", 10, "mod…/a.bin"},
		{"model/模型.bin", 10, "mod…型.bin"},
		{"model/a.bin", 1, "…"},
		{"model/a.bin", 0, ""},
	} {
		got := shorten(c.name, c.width)
		if got != c.want || runewidth.StringWidth(got) > c.width {
			t.Errorf("%q in %d columns: got %q, want %q", c.name, c.width, got, c.want)
		}
	}
}

// Where there is little room, percent and time left go last, no line is wider than
// the terminal, and shards can be told apart.
func TestBarLines(t *testing.T) {
	var moving []transfer
	for i := range 4 {
		moving = append(moving, transfer{name: fmt.Sprintf("model/text_encoder/model-%05d-of-00004.safetensors", i+1), done: int64(i) * 1e9, total: 4_900_000_000})
	}
	moving[2].note = "resumed"
	s := sums{done: 6_000_000_000, total: 19_600_000_000, exist: 5}
	for columns, want := range map[int]string{
		24:  "push              30 %",
		40:  "push             30 %  4m51s left",
		80:  "push                        [==---]  30 %  4m51s left  6.0 GB of 20 GB  47 MB/s",
		200: "push                                                [======----------------]   30 %  4m51s left  6.0 GB of 20 GB  47 MB/s  5 exist",
	} {
		lines := barLines("push", s, 46.7e6, moving, columns)
		seen := map[string]bool{}
		for _, line := range lines {
			if n := runewidth.StringWidth(line); n > columns {
				t.Errorf("%d columns: got %d: %q", columns, n, line)
			}
			name, _, _ := strings.Cut(line, "  ")
			seen[name] = true
		}
		last := lines[len(lines)-1]
		if len(seen) != 5 || !strings.Contains(last, "30 %") || columns >= 40 && !strings.Contains(last, "4m51s left") {
			t.Errorf("%d columns: got\n%s\nwant names that differ, and percent and time left such as\n%s", columns, strings.Join(lines, "\n"), want)
		}
		if columns < 80 == strings.Contains(last, "[") {
			t.Errorf("%d columns: want a bar where there is room, got %q", columns, last)
		}
	}
}

// A ^C that the terminal shows, and a warning in between, leave whole lines.
func TestScreenLeavesWholeLines(t *testing.T) {
	var b bytes.Buffer
	s := &screen{out: &b}
	s.draw(nil)
	if b.Len() != 0 {
		t.Errorf("nothing was drawn: got %q", b.String())
	}
	s.draw([]string{"one", "two"})
	fmt.Fprintln(s, "warning: odd")
	s.draw([]string{"one"})
	b.WriteString("^C") // by the terminal
	s.draw(nil)
	fmt.Fprintln(s, "interrupted")
	want := "\rone\x1b[K\r\ntwo\x1b[K\r\n\x1b[J" + "\r\x1b[2A\x1b[J" + "warning: odd\n" +
		"\rone\x1b[K\r\n\x1b[J" + "^C" + "\r\x1b[1A\x1b[J" + "interrupted\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// --format is about the result; progress is beside it.
func TestProgressIsShownBesideJSON(t *testing.T) {
	for args, want := range map[string]bool{"": true, "--format=json": true, "-q": false, "--no-progress": false} {
		s := &session{printer: &printer{out: io.Discard, err: io.Discard}}
		app, got := newApp(s), false
		app.Command("push").Action = s.command(func(*cli.Context) error {
			got = s.showing && s.options.Registry.Policy.Retrying != nil
			return nil
		})
		words, err := reorder(app, strings.Fields("push m.carton host/repo:1 "+args))
		if err == nil {
			err = app.Run(append([]string{"carton-oci"}, words...))
		}
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", args, got, err, want)
		}
	}
}

func TestRetriesAreTold(t *testing.T) {
	var r retries
	start := time.Unix(1_000_000, 0)
	after := start.Add
	r.add(registry.Retry{Number: 1, Of: 7, Wait: 400 * time.Millisecond, Err: errors.New("503")}, start)
	if got := r.news(start); got != "" {
		t.Errorf("a short wait: got the line %q", got)
	}
	if got, want := r.waiting(start, 80), "retry 1 of 7 in 1s: 503"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := r.waiting(after(time.Second), 80); got != "" {
		t.Errorf("when the wait is over: got %q", got)
	}
	r.add(registry.Retry{Number: 3, Of: 7, Wait: 4 * time.Second, Err: errors.New("503")}, after(2*time.Second))
	r.add(registry.Retry{Number: 1, Of: 7, Wait: 2 * time.Second, Err: errors.New("EOF")}, after(2*time.Second))
	if got, want := r.news(after(2*time.Second)), "retry 3 of 7 in 4s: 503"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := r.news(after(2 * time.Second)); got != "" {
		t.Errorf("told twice: %q", got)
	}
	for columns, want := range map[int]string{80: "retry 3 of 7 in 1s: 503", 39: "retry 3 of 7 in 1s: 503", 20: "retry 3 of 7 in 1s:…"} {
		if got := r.waiting(after(5*time.Second), columns); got != want {
			t.Errorf("in %d columns: got %q, want %q", columns, got, want)
		}
	}
}

// What is drawn leaves nothing behind, however often the end is said.
func TestBarEnds(t *testing.T) {
	var b bytes.Buffer
	d := startDisplay(&screen{out: &b}, "pull", &retries{})
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
