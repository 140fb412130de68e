package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// The drawing: for each case one bar a program, as long as the time it took
// beside the command's, on a logarithmic scale. The line is the command.

const (
	drawingWidth = 760
	labelWidth   = 330  // of cases and programs
	barHeight    = 12   // of a program
	caseGap      = 10   // between cases
	scaleFrom    = -1.0 // powers of two: half the time
	scaleTo      = 6.0  // and 64 times
)

// style is readable on white and on black: a drawing in a page can't know which
// it is, so it asks the reader's system.
const style = `<style>
text{font:11px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.g{stroke:#d0d7de}.one{stroke:#0969da;stroke-width:2}
.curl{fill:#8c959f}.oras-go{fill:#bf8700}.skopeo{fill:#8250df}
@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.g{stroke:#3d444d}.one{stroke:#58a6ff}.curl{fill:#6e7681}.oras-go{fill:#d29922}.skopeo{fill:#a371f7}}
</style>`

// drawing returns the SVG, the same for the same figures.
func drawing(b *book) []byte {
	var body bytes.Buffer
	y := 34
	for _, r := range b.Results {
		mine := r.runs(ours)
		if mine == nil || len(r.Programs) < 2 {
			continue
		}
		fmt.Fprintf(&body, "<text class=\"t\" x=\"0\" y=\"%d\">%s</text>\n", y+10, html.EscapeString(r.Title))
		y += 16
		for _, m := range r.Programs {
			if m.Name == ours {
				continue
			}
			times := ratios(m.Runs, mine, wall).median
			from, to := at(1), at(times)
			fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s, %s ×</text>\n", labelWidth-8, y+10, m.Name, two(times))
			fmt.Fprintf(&body, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n",
				m.Name, min(from, to), y+1, math.Abs(to-from), barHeight)
			y += barHeight + 2
		}
		y += caseGap
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n%s\n",
		drawingWidth, y, drawingWidth, y, style)
	fmt.Fprintf(&w, "<text x=\"0\" y=\"14\">How many times as long as carton-oci (the blue line)</text>\n")
	for power := scaleFrom; power <= scaleTo; power++ {
		times := math.Exp2(power)
		class := "g"
		if power == 0 {
			class = "one"
		}
		fmt.Fprintf(&w, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"28\" y2=\"%d\"/><text x=\"%.1f\" y=\"24\" text-anchor=\"middle\">%g</text>\n",
			class, at(times), at(times), y, at(times), times)
	}
	w.Write(body.Bytes())
	w.WriteString("</svg>\n")
	return w.Bytes()
}

// at is where on the scale a ratio is.
func at(times float64) float64 {
	power := min(max(math.Log2(times), scaleFrom), scaleTo)
	return labelWidth + (power-scaleFrom)/(scaleTo-scaleFrom)*(drawingWidth-labelWidth-16)
}
