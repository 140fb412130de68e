package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// The marks between which docs/benchmarks.md is written anew.
const (
	beginMark = "<!-- make bench writes from here -->"
	endMark   = "<!-- to here -->"
)

// rewrite replaces what is between the marks of a file.
func rewrite(name, text string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(old, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s: want the lines %q and %q", name, beginMark, endMark)
	}
	text = string(before) + beginMark + "\n" + text + endMark + string(after)
	return os.WriteFile(name, []byte(text), 0o644)
}

// table returns everything that was measured as one Markdown table. A case has
// one row a program; the verdicts stand in the row of the program that they are
// about.
func table(b *book) string {
	var w strings.Builder
	fmt.Fprintf(&w, "\n%s.\n\n", b.Machine)
	w.WriteString("| case | program | wall | carton-oci to it | CPU | peak | sent | received | written | fsync | wanted: got |\n")
	w.WriteString("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, r := range b.Results {
		for i, m := range r.Programs {
			row(&w, r, m, i == 0)
		}
	}
	w.WriteString("\n")
	return w.String()
}

func row(w *strings.Builder, r result, m measured, first bool) {
	title, verdicts := "", ""
	if first {
		title = fmt.Sprintf("%s (%d×)", r.Title, len(m.Runs))
		var all []string
		for _, v := range r.Verdicts {
			all = append(all, fmt.Sprintf("%s %s: %s", mark(v.OK), v.Wanted, v.Got))
		}
		verdicts = strings.Join(all, "<br>")
	}
	ratio := ""
	if mine := r.runs(ours); mine != nil && m.Name != ours {
		ratio = "**" + span(ratios(mine, m.Runs, wall)) + "**<br>CPU " + span(ratios(mine, m.Runs, cpu))
	}
	seconds := of(m.Runs, wall)
	sync, after := of(m.Runs, func(f figures) float64 { return f.Sync }), of(m.Runs, func(f figures) float64 { return f.After })
	fsync := ""
	if sync.median > 0 || after.median > 0.005 {
		fsync = fmt.Sprintf("%.2f s", sync.median)
		if after.median > 0.005 {
			fsync += fmt.Sprintf(" + %.2f s after", after.median)
		}
	}
	cells := []string{
		title, m.Name,
		fmt.Sprintf("%s s<br>%s – %s", two(seconds.median), two(seconds.least), two(seconds.most)),
		ratio,
		two(of(m.Runs, cpu).median) + " s",
		fmt.Sprintf("%.0f MiB", of(m.Runs, peakOf).most/(1<<20)),
		bytesText(of(m.Runs, sent).median), bytesText(of(m.Runs, got).median), bytesText(of(m.Runs, written).median),
		fsync, verdicts,
	}
	w.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func span(s spread) string {
	return fmt.Sprintf("%s (%s – %s)", two(s.median), two(s.least), two(s.most))
}

// bytesText writes bytes in decimal units, as networks count.
func bytesText(n float64) string {
	switch {
	case n >= 99.5e6:
		return fmt.Sprintf("%.0f MB", n/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", n/1e3)
	}
	return fmt.Sprintf("%.0f B", n)
}
