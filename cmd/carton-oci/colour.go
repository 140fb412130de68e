package main

import (
	"io"
	"os"
	"strings"
)

// Colour is for a person who looks for one word among many: what went wrong, what
// differs, where a table begins. It says nothing that the words don't.
//
// It is used on a terminal. NO_COLOR, where it is not empty, CLICOLOR=0 and TERM=dumb
// turn it off; CLICOLOR_FORCE, where it is neither empty nor 0, turns it on elsewhere
// too, and NO_COLOR wins.
// https://no-color.org, https://bixense.com/clicolors/
type style string

// The styles, as the parameters of ECMA-48's SGR.
const (
	styleHead style = "1"  // bold
	styleBad  style = "31" // red
	styleGood style = "32" // green
	styleOdd  style = "33" // yellow
	styleBar  style = "36" // cyan
)

// paint puts text that w is to show into a style, where w shows any.
func (s style) paint(w io.Writer, text string) string {
	if s == "" || text == "" || !shows(w) {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// shows reports whether w is to show colour.
func shows(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	columns, _ := terminalSize(w) // 0 with TERM=dumb
	return columns > 0 && os.Getenv("CLICOLOR") != "0"
}

// sizeBar draws a value beside the largest of its column, in at most so many columns,
// to an eighth of one; "" is less than that.
func sizeBar(value, most int64, columns int) string {
	if value <= 0 || most <= 0 {
		return ""
	}
	eighths := int(float64(value)/float64(most)*float64(8*columns) + 0.5)
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar
}
