package main

import (
	"fmt"
	"slices"
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
func (p *printer) table(rows [][]string) { p.barTable(rows, nil) }

// The columns of a bar behind a row, and of a terminal that has room for it.
const (
	sizeBarMost  = 24
	sizeBarLeast = 8
	sizeBarsFrom = 60
)

// barTable is table with a bar behind each row, on a terminal: values has what they
// show of each row, the head's too; nil is no bars.
func (p *printer) barTable(rows [][]string, values []int64) {
	bars := 0
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
		room := columns
		if len(values) > 0 && columns >= sizeBarsFrom {
			room -= sizeBarLeast + 2
		}
		narrow(widths, room)
		if room < columns {
			bars = min(columns-lineWidth(widths)-2, sizeBarMost)
		}
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
	for r, row := range rows {
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
		text := strings.TrimRight(line.String(), " ")
		switch {
		case r == 0:
			text = styleHead.paint(p.out, text)
		case bars >= sizeBarLeast && values[r] > 0:
			text = line.String() + "  " + styleBar.paint(p.out, sizeBar(values[r], slices.Max(values), bars))
		}
		p.write(text + "\n")
		line.Reset()
	}
}

// columnLeast is how narrow a column of a table becomes at most.
const columnLeast = 8

// narrow makes columns with two spaces between them fit a terminal, the widest
// first.
func narrow(widths []int, columns int) {
	for over := lineWidth(widths) - columns; over > 0; over-- {
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

// lineWidth is how wide columns with two spaces between them are.
func lineWidth(widths []int) int {
	sum := 2 * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
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
		n := runewidth.StringWidth(value)
		if value = valueStyle(name, value).paint(p.out, value); width+2+n > columns && 2+n <= columns {
			if name != "" {
				p.write(name + "\n")
			}
			p.write("  " + value + "\n")
			continue
		}
		p.write(fmt.Sprintf("%-*s  %s\n", width, name, value))
	}
}

// valueStyle is the style of a field's value.
func valueStyle(name, value string) style {
	switch {
	case name != "verdict":
		return ""
	case value == "ok":
		return styleGood
	case value == "broken":
		return styleBad
	}
	return styleOdd
}
