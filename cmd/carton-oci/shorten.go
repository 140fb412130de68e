package main

import (
	"path"

	"github.com/mattn/go-runewidth"
)

// shortenAll shortens names so that those that differ can still be told apart, if
// that is possible: shards differ in a few digits, which may be anywhere.
func shortenAll(names []string, width int) []string {
	if len(names) > manyNames {
		return listOf(names, func(name string) string { return shorten(name, width) })
	}
	distinct := countDistinct(names)
	for _, base := range []bool{false, true} {
		for parts := 2; parts <= 6; parts++ {
			out := listOf(names, func(name string) string {
				if base && runewidth.StringWidth(name) > width {
					name = path.Base(name)
				}
				return shortenAt(name, width, (width-1)*parts/6)
			})
			if countDistinct(out) == distinct {
				return out
			}
		}
	}
	return listOf(names, func(name string) string { return shorten(name, width) })
}

// manyNames are more than anybody compares, and than are worth trying ways for.
const manyNames = 10_000

func countDistinct(names []string) int {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		seen[name] = true
	}
	return len(seen)
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
