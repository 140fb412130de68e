package main

import (
	"path"

	"github.com/mattn/go-runewidth"
)

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
