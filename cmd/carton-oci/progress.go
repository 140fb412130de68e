package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

// How often the state of a transfer is shown.
const (
	barEvery  = 100 * time.Millisecond // on a terminal
	lineEvery = 5 * time.Second        // elsewhere
)

// display shows how far the transfers of one command are: on a terminal a bar
// for each that is under way and one for all of them, a line every few seconds
// elsewhere. What receives events only counts; a ticker draws, so that ten
// thousand members cost nothing.
type display struct {
	count tally
	done  chan struct{}
	ended sync.WaitGroup
}

// startDisplay shows what its report method is told until stop. verb is what
// the command does to bytes ("push").
func startDisplay(w io.Writer, terminal bool, verb string) *display {
	d := &display{done: make(chan struct{})}
	draw, every := d.lines(w, verb), lineEvery
	if terminal {
		draw, every = newBars(w, verb, &d.count).draw, barEvery
	}
	draw(false) // the rate counts from here
	d.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				draw(false)
			case <-d.done:
				draw(true)
				return
			}
		}
	})
	return d
}

// report receives events.
func (d *display) report(e progress.Event) { d.count.add(e) }

// stop leaves the cursor at the start of an empty line. It can be called again.
func (d *display) stop() {
	select {
	case <-d.done:
	default:
		close(d.done)
	}
	d.ended.Wait()
}

// lines writes a line each time. The last one is left out: what there is to say
// at the end is the command's result.
func (d *display) lines(w io.Writer, verb string) func(last bool) {
	var p pace
	return func(last bool) {
		s := d.count.sum()
		rate := p.rate(time.Now(), s.moved)
		if last || s.total <= 0 {
			return
		}
		parts := []string{fmt.Sprintf("%s of %s", humanSize(s.done), humanSize(s.total)), fmt.Sprintf("%d %%", s.percent())}
		for _, more := range []string{s.speed(rate), s.besides()} {
			if more != "" {
				parts = append(parts, more)
			}
		}
		fmt.Fprintf(w, "%s: %s\n", verb, strings.Join(parts, ", "))
	}
}
