package main

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/errtext"
)

const (
	// barsShown is how many transfers have a line of their own: as many as there are
	// connections where nobody says otherwise.
	barsShown = download.DefaultConcurrency

	barMost  = 24 // columns of a bar, its brackets included
	barLeast = 8
	nameMost = 60 // columns for a member's path, and at most half of the line
	nameTrim = 14 // what is left of a path at least, where figures want the room
)

// barLine is one line: what moves, how far it is, what there is to say of it
// from most to least important, and what else.
type barLine struct {
	name        string
	done, total int64
	figures     []string
	more        []string
}

// barLines returns what is drawn, in at most so many columns: a line for each
// transfer that moves, and below them one for all. Where there is little room, what
// is least important goes first: what else there is to say, then the bar itself,
// then sizes; how much is through, and the time that is left, go last. Of a path the
// middle is cut out.
func barLines(verb string, s sums, rate float64, moving []transfer, columns int) []string {
	var list []barLine
	for _, t := range moving {
		list = append(list, barLine{
			errtext.Quote(t.name), t.done, t.total,
			[]string{percentText(t.done, t.total), sizesText(t.done, t.total)},
			[]string{t.note},
		})
	}
	if s.total > 0 {
		list = append(list, barLine{
			verb, s.done, s.total,
			[]string{percentText(s.done, s.total), timeLeft(s.done, s.total, rate), sizesText(s.done, s.total)},
			[]string{speed(rate), s.besides()},
		})
	}
	width := 0
	for _, l := range list {
		width = max(width, runewidth.StringWidth(l.name))
	}
	width = min(width, nameMost, max(columns/3, nameTrim))
	names := shortenAll(listOf(list, func(l barLine) string { return l.name }), width)
	room, bar := columns-width, barMost
	behind := make([]string, len(list))
	for i, l := range list {
		behind[i] = fit(l.figures, room)
		behind[i] += fit(l.more, room-len(behind[i])-2-barLeast)
		bar = min(bar, room-len(behind[i])-2)
	}
	out := make([]string, len(list))
	for i, l := range list {
		out[i] = runewidth.FillRight(names[i], width) + l.bar(bar) + behind[i]
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
	return fmt.Sprintf("%3d %%", int64(100*(float64(done)/float64(total))))
}

// sizesText writes how far something of a size is; -1 is a size that is not known.
func sizesText(done, total int64) string {
	if total < 0 {
		return errtext.Size(done)
	}
	return errtext.Size(done) + " of " + errtext.Size(total)
}
