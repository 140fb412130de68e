package main

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const (
	// barsShown is how many transfers have a line of their own: as many as there are
	// connections where nobody says otherwise.
	barsShown = defaultConcurrency

	barMost  = 24 // columns of a bar, its brackets included
	barLeast = 8
	nameMost = 60 // columns for a member's path, and at most half of the line
	nameTrim = 14 // what is left of a path at least, where figures want the room
)

// bars draw transfers on a terminal: a line for each that is under way, and
// below them one for all.
type bars struct {
	screen *screen
	verb   string
	count  *tally
	pace   pace

	retries *retries
}

// draw brings the lines up to date. The last time it takes them away.
func (b *bars) draw(last bool) {
	s := b.count.sum()
	rate := b.pace.rate(time.Now(), s.moved)
	columns, lines := terminalSize(b.screen)
	if last || columns == 0 {
		b.screen.draw(nil)
		return
	}
	drawn := barLines(b.verb, s, rate, b.count.underWay(min(barsShown, lines-4)), columns-1)
	if text := b.retries.waiting(time.Now()); text != "" {
		drawn = append(drawn, shorten(remark(text), columns-1))
	}
	b.screen.draw(drawn)
}

// barLine is one line: what moves, how far it is, what there is to say of it
// from most to least important, and what else.
type barLine struct {
	name        string
	done, total int64
	figures     []string
	more        []string
}

// barLines returns what is drawn, in at most so many columns. Where there is
// little room, what is least important goes first: what else there is to say, then
// the bar itself, then sizes; how much is through, and the time that is left, go
// last. Of a path the middle is cut out.
func barLines(verb string, s sums, rate float64, moving []transfer, columns int) []string {
	var list []barLine
	for _, t := range moving {
		list = append(list, barLine{carton.QuotePath(t.name), t.done, t.total, []string{percentText(t.done, t.total), figures(t.done, t.total)}, []string{t.note()}})
	}
	if s.total > 0 {
		list = append(list, barLine{
			verb, s.done, s.total,
			[]string{percentText(s.done, s.total), s.left(rate), figures(s.done, s.total)},
			[]string{speed(rate), s.besides()},
		})
	}
	name, names := 0, make([]string, len(list))
	for i, l := range list {
		name, names[i] = max(name, runewidth.StringWidth(l.name)), l.name
	}
	name = min(name, nameMost, max(columns/3, nameTrim))
	names = shortenAll(names, name)
	room, bar := columns-name, barMost
	behind := make([]string, len(list))
	for i, l := range list {
		behind[i] = fit(l.figures, room)
		behind[i] += fit(l.more, room-len(behind[i])-2-barLeast)
		bar = min(bar, room-len(behind[i])-2)
	}
	out := make([]string, len(list))
	for i, l := range list {
		out[i] = runewidth.FillRight(names[i], name) + l.bar(bar) + behind[i]
	}
	return out
}

// fit joins as many of the parts as there is room for.
func fit(parts []string, room int) string {
	var b strings.Builder
	for _, part := range parts {
		if part == "" {
			continue
		}
		if b.Len()+2+len(part) > room {
			break
		}
		b.WriteString("  " + part)
	}
	return b.String()
}

// bar draws a bar of so many columns, "" where they are too few.
func (l barLine) bar(columns int) string {
	if columns < barLeast || l.total <= 0 {
		return ""
	}
	inside := columns - 2
	full := int(float64(inside) * min(1, float64(l.done)/float64(l.total)))
	return "  [" + strings.Repeat("=", full) + strings.Repeat("-", inside-full) + "]"
}

// percentText writes how much of a whole is through, "" where that is not known.
func percentText(done, total int64) string {
	if total <= 0 {
		return ""
	}
	return fmt.Sprintf("%3d %%", (sums{done: done, total: total}).percent())
}

// figures writes how far something of a size is; -1 is a size that is not known.
func figures(done, total int64) string {
	if total < 0 {
		return errtext.Size(done)
	}
	return errtext.Size(done) + " of " + errtext.Size(total)
}

// shortenAll shortens names so that they can still be told apart, if that is
// possible: shards differ in a few digits, which may be anywhere.
func shortenAll(names []string, width int) []string {
	cut := func(from, parts int) ([]string, bool) {
		out, seen := make([]string, len(names)), map[string]bool{}
		for i, name := range names {
			if from > 0 && runewidth.StringWidth(name) > width {
				name = path.Base(name)
			}
			out[i] = shortenAt(name, width, (width-1)*parts/6)
			seen[out[i]] = true
		}
		return out, len(seen) == len(names)
	}
	for from := range 2 {
		for parts := 2; parts <= 6; parts++ {
			if out, differ := cut(from, parts); differ {
				return out
			}
		}
	}
	out, _ := cut(0, 2)
	return out
}

// shorten cuts the middle out of text that is wider than so many columns: a third
// of what stays is before the cut.
func shorten(text string, width int) string { return shortenAt(text, width, (width-1)/3) }

func shortenAt(text string, width, head int) string {
	if runewidth.StringWidth(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	before := runewidth.Truncate(text, head, "")
	room := width - 1 - runewidth.StringWidth(before)
	rest := []rune(text)
	at := len(rest)
	for at > 0 && room >= runewidth.RuneWidth(rest[at-1]) {
		at--
		room -= runewidth.RuneWidth(rest[at])
	}
	return before + "…" + string(rest[at:])
}
