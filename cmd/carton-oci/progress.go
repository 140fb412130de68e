package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// How often the state of a transfer is shown.
const (
	barEvery  = 100 * time.Millisecond // on a terminal
	lineEvery = 10 * time.Second       // elsewhere
)

// display shows how far the transfers of one command are: on a terminal a bar
// for each that is under way and one for all of them; elsewhere, such as in a log
// file, a line now and then. What receives events only counts; a ticker draws, so that ten
// thousand members cost nothing.
type display struct {
	count tally
	done  chan struct{}
	ended sync.WaitGroup
	drawn bool // bars, on a terminal
}

// startDisplay shows what its report method is told until stop. verb is what
// the command does to bytes ("push").
func startDisplay(w io.Writer, verb string, r *retries) *display {
	d := &display{done: make(chan struct{})}
	draw, every := d.lines(w, verb), lineEvery
	if s, ok := w.(*screen); ok {
		if columns, _ := terminalSize(s); columns > 0 {
			draw, every = (&bars{screen: s, verb: verb, count: &d.count, retries: r}).draw, barEvery
			d.drawn = true
		}
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
		parts := []string{fmt.Sprintf("%s of %s", errtext.Size(s.done), errtext.Size(s.total)), fmt.Sprintf("%d %%", s.percent())}
		for _, more := range []string{speed(rate), s.left(rate), s.besides()} {
			if more != "" {
				parts = append(parts, more)
			}
		}
		fmt.Fprintf(w, "%s: %s\n", verb, strings.Join(parts, ", "))
	}
}
