package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// How often the state of a transfer is shown.
const (
	barEvery  = 100 * time.Millisecond // on a terminal
	lineEvery = 5 * time.Second        // elsewhere

	barWidth = 30 // columns, without the figures around it: room for a "^C" in 80
)

// display shows how far the transfers of one command are: one bar on a
// terminal, a line every few seconds elsewhere. What receives events only
// counts; a ticker draws, so that ten thousand members cost nothing.
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
		draw, every = d.bar(w, verb), barEvery
	}
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

func (d *display) lines(w io.Writer, verb string) func(last bool) {
	return func(last bool) {
		if done, total := d.count.sum(); !last && total > 0 {
			fmt.Fprintf(w, "%s: %s of %s, %d %%\n", verb, humanSize(done), humanSize(total), done*100/total)
		}
	}
}

func (d *display) bar(w io.Writer, verb string) func(last bool) {
	p := mpb.New(mpb.WithOutput(w), mpb.WithWidth(barWidth), mpb.WithAutoRefresh())
	bar := p.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(verb+" "), decor.CountersKiloByte("% .1f of % .1f")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageSpeed(decor.SizeB1000(0), "% .1f"),
			decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)),
	)
	return func(last bool) {
		done, total := d.count.sum()
		bar.SetTotal(max(total, done+1), false)
		bar.SetCurrent(done)
		if last {
			bar.Abort(true)
			p.Wait()
		}
	}
}

// tally adds up events of many transfers.
type tally struct {
	mu          sync.Mutex
	transfers   map[string]*transfer
	done, total int64
}

type transfer struct{ done, total int64 }

func (t *tally) add(e progress.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.transfers == nil {
		t.transfers = map[string]*transfer{}
	}
	tr := t.transfers[e.Name]
	if tr == nil {
		tr = &transfer{}
		t.transfers[e.Name] = tr
	}
	if e.Total >= 0 {
		t.total += e.Total - tr.total
		tr.total = e.Total
	}
	done := e.Done
	switch e.State {
	case progress.Exists, progress.Mounted, progress.Finished:
		done = tr.total
	case progress.Started, progress.Resumed, progress.Moving, progress.Retrying:
	}
	t.done += done - tr.done
	tr.done = done
}

// sum returns the bytes that are through, of all that are known.
func (t *tally) sum() (done, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done, t.total
}
