package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

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
	out     io.Writer // standard error
	screen  *screen   // the same where it is a terminal that bars are drawn on, else nil
	verb    string    // what the command does to bytes ("push")
	count   counter
	meter   meter
	retries *retries

	done  chan struct{}
	ended sync.WaitGroup
}

// startDisplay shows what its report method is told until stop.
func startDisplay(w io.Writer, verb string, r *retries) *display {
	d := &display{out: w, verb: verb, retries: r, done: make(chan struct{})}
	every := lineEvery
	if columns, _ := terminalSize(w); columns > 0 {
		d.screen, _ = w.(*screen)
		every = barEvery
	}
	d.show() // the rate counts from here
	d.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				d.show()
			case <-d.done:
				// What there is to say at the end is the command's result.
				if d.screen != nil {
					d.screen.draw(nil)
				}
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

// show draws the bars anew, or writes a line.
func (d *display) show() {
	now, s := time.Now(), d.count.sum()
	rate := d.meter.rate(now, s.moved)
	if d.screen == nil {
		if text := s.line(rate); text != "" {
			fmt.Fprintf(d.out, "%s: %s\n", d.verb, text)
		}
		return
	}
	columns, lines := terminalSize(d.screen)
	drawn := barLines(d.verb, s, rate, d.count.underWay(min(barsShown, lines-4)), columns-1)
	if text := d.retries.waiting(now, columns-1); text != "" {
		drawn = append(drawn, text)
	}
	d.screen.draw(drawn)
}

// line is the state of all transfers on one line, "" while nothing is known.
func (s sums) line(rate float64) string {
	if s.total <= 0 {
		return ""
	}
	parts := []string{
		sizesText(s.done, s.total), strings.TrimSpace(percentText(s.done, s.total)), speed(rate),
		timeLeft(s.done, s.total, rate), s.besides(),
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}
