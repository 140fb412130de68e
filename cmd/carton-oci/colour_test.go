package main

import (
	"io"
	"testing"

	"github.com/mattn/go-runewidth"
)

func TestSizeBar(t *testing.T) {
	for _, c := range []struct {
		value, most int64
		want        string
	}{
		{8, 8, "████"},
		{4, 8, "██"},
		{1, 32, "▏"},
		{5, 32, "▋"},
		{1, 1000, ""},
		{0, 8, ""},
		{-1, 8, ""},
		{1, 0, ""},
		{1 << 62, 1 << 62, "████"},
	} {
		if got := sizeBar(c.value, c.most, 4); got != c.want {
			t.Errorf("%d of %d: got %q, want %q", c.value, c.most, got, c.want)
		}
	}
	for value := int64(0); value <= 100; value++ {
		if got := runewidth.StringWidth(sizeBar(value, 100, 10)); got > 10 {
			t.Errorf("%d of 100: got %d columns, want at most 10", value, got)
		}
	}
}

// What is no terminal shows colour only where it is forced to, and never with
// NO_COLOR.
func TestShowsColour(t *testing.T) {
	for _, c := range []struct {
		no, force string
		want      bool
	}{
		{"", "", false}, {"", "0", false}, {"", "1", true}, {"1", "1", false}, {"0", "1", false},
	} {
		t.Setenv("NO_COLOR", c.no)
		t.Setenv("CLICOLOR_FORCE", c.force)
		if got := shows(io.Discard); got != c.want {
			t.Errorf("NO_COLOR=%s CLICOLOR_FORCE=%s: got %v, want %v", c.no, c.force, got, c.want)
		}
	}
}
