package main

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/carton-oci/carton-oci/internal/secret"
)

// cellMost is the widest cell, in columns, that makes its column wider: one name
// of thousands of characters shall not pad every row.
const cellMost = 100

// table prints rows of equally many cells, aligned. The first row is the head.
// Columns are aligned left, but for those headed SIZE, MEMBERS and PARAMETERS,
// which hold numbers.
func (p *printer) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = escape(secret.StrikeResult(cell))
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	if columns, _ := terminalSize(p.out); columns > 0 {
		narrow(widths, columns)
		for i := range widths {
			cells := shortenAll(listOf(rows, func(row []string) string { return row[i] }), widths[i])
			for r := range rows {
				rows[r][i] = cells[r]
			}
		}
	}
	for i := range widths {
		widths[i] = min(widths[i], cellMost)
	}
	var line strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-runewidth.StringWidth(cell)))
			if i > 0 {
				line.WriteString("  ")
			}
			if isNumeric(rows[0][i]) {
				cell, pad = pad, cell
			}
			line.WriteString(cell + pad)
		}
		p.write(strings.TrimRight(line.String(), " ") + "\n")
		line.Reset()
	}
}

// columnLeast is how narrow a column of a table becomes at most.
const columnLeast = 8

// narrow makes columns with two spaces between them fit a terminal, the widest
// first.
func narrow(widths []int, columns int) {
	over := 2*(len(widths)-1) - columns
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= columnLeast {
			return
		}
		widths[widest]--
	}
}

// isNumeric reports whether the column with that head holds numbers.
func isNumeric(head string) bool {
	return head == "SIZE" || head == "MEMBERS" || head == "PARAMETERS"
}

// fields prints names and values, aligned; an empty value is left out. A value is
// never cut: on a terminal, one that fits on a line of its own, and on none with
// its name, has that.
func (p *printer) fields(pairs ...[2]string) {
	width := 0
	for _, pair := range pairs {
		if pair[1] != "" {
			width = max(width, len(pair[0]))
		}
	}
	columns, _ := terminalSize(p.out)
	for _, pair := range pairs {
		if pair[1] == "" {
			continue
		}
		name, value := pair[0], escape(secret.StrikeResult(pair[1]))
		if n := runewidth.StringWidth(value); width+2+n > columns && 2+n <= columns {
			if name != "" {
				p.write(name + "\n")
			}
			p.write("  " + value + "\n")
			continue
		}
		p.write(fmt.Sprintf("%-*s  %s\n", width, name, value))
	}
}
