package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	// barsShown is how many transfers have a bar of their own: as many as there are
	// connections where nobody says otherwise.
	barsShown = defaultConcurrency

	barWidth = 24 // columns, at most
	barLeast = 12 // columns that figures leave to a bar
	nameMost = 40 // columns for a member's path, and at most a quarter of the line
)

// bars draw transfers on a terminal: one bar for each that is under way, and
// below them one for all. They leave nothing behind.
type bars struct {
	verb  string
	count *tally
	pace  pace
	out   *mpb.Progress
	total *bar // nil until a total is known
	own   map[string]*bar
}

// bar is one line. What stands behind it is said from most to least important,
// and as much of it is shown as there is room for.
type bar struct {
	*mpb.Bar
	behind atomic.Pointer[[]string]
}

func newBars(w io.Writer, verb string, count *tally) *bars {
	out := mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh())
	return &bars{verb: verb, count: count, out: out, own: map[string]*bar{}}
}

// draw brings the bars up to date.
func (b *bars) draw(last bool) {
	s := b.count.sum()
	rate := b.pace.rate(time.Now(), s.moved)
	moving := b.count.underWay(barsShown)
	if last {
		moving = nil
	}
	b.drawOwn(moving)
	switch {
	case last:
		if b.total != nil {
			b.total.Abort(true)
		}
		b.out.Wait()
		return
	case s.total <= 0:
		return
	case b.total == nil:
		b.total = b.add(b.verb, mpb.BarPriority(math.MaxInt)) // the last
	}
	b.total.set(s.done, s.total, figures(s.done, s.total), fmt.Sprintf("%d %%", s.percent()), s.speed(rate), s.besides())
}

// drawOwn gives every transfer that moves a bar, and takes it from all others.
func (b *bars) drawOwn(moving []transfer) {
	seen := map[string]bool{}
	for _, t := range moving {
		seen[t.name] = true
		if b.own[t.name] == nil {
			b.own[t.name] = b.add(t.name)
		}
		note := ""
		if t.resumed {
			note = "resumed"
		}
		b.own[t.name].set(t.done, t.total, figures(t.done, t.total), note)
	}
	for name, own := range b.own {
		if !seen[name] {
			own.Abort(true)
			delete(b.own, name)
		}
	}
}

// add makes a bar.
func (b *bars) add(name string, more ...mpb.BarOption) *bar {
	line := &bar{}
	line.behind.Store(&[]string{})
	title := func(s decor.Statistics) string { return shorten(name, min(nameMost, s.AvailableWidth/4)) }
	line.Bar = b.out.AddBar(0, append(more,
		mpb.BarWidth(barWidth), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(title, decor.WCSyncWidthR)),
		mpb.AppendDecorators(decor.Any(line.text, decor.WCSyncWidthR)),
	)...)
	return line
}

// set says how far it is. A bar that is full would end itself.
func (l *bar) set(done, total int64, behind ...string) {
	l.SetTotal(max(total, done+1), false)
	l.SetCurrent(done)
	l.behind.Store(&behind)
}

func (l *bar) text(s decor.Statistics) string {
	var text strings.Builder
	for _, part := range *l.behind.Load() {
		if part == "" {
			continue
		}
		if text.Len()+2+len(part) > s.AvailableWidth-barLeast {
			break
		}
		text.WriteString("  " + part)
	}
	return text.String()
}

// figures writes how far something of a size is; -1 is a size that is not known.
func figures(done, total int64) string {
	if total < 0 {
		return humanSize(done)
	}
	return humanSize(done) + " of " + humanSize(total)
}

// shorten cuts the beginning of a path: its end says more.
func shorten(name string, width int) string {
	name = carton.QuotePath(name)
	if runewidth.StringWidth(name) <= width {
		return name
	}
	return runewidth.TruncateLeft(name, runewidth.StringWidth(name)-width+1, "…")
}
