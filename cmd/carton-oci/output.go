package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/mattn/go-runewidth"
)

// All printing happens in this file, in progress.go with what it draws on
// (bars.go, screen.go), and in trace.go, by these
// rules:
//
//   - Results go to standard output, everything else to standard error.
//   - With --format json a command prints one object on standard output, and on
//     standard error progress, warnings and errors. Names in the object never
//     change their meaning.
//   - -q leaves of the result what a script would want, and of the rest only
//     errors and warnings.
//   - An error is one line, "carton-oci: verb object: what: got X, want Y",
//     followed by "hint:" lines that say what can be done.
//   - No colours, no cursor movement except by the progress bars on a terminal.
//   - Tables are as wide as the terminal at most, where there is one: the middle
//     of what is too wide is cut out. Elsewhere they are as wide as they are, but
//     no cell makes a column wider than cellMost.
//   - What came from outside (names, a registry's words) is shown with
//     unprintable characters escaped, so that it can't forge a line: \uXXXX in JSON.
//   - A password or token that was sent anywhere is not shown, whoever repeats it
//     (internal/secret); a member's bytes are, as they are.
//   - Sizes for people are in powers of 1000 with two significant digits or
//     more; JSON has bytes.
//   - A result that can't be written is an error.

// printer writes what a command has to say.
type printer struct {
	out, err io.Writer
	quiet    bool // -q
	json     bool // --format json
	failed   error
}

// linef prints one line of the result.
func (p *printer) linef(format string, args ...any) {
	p.write(escape(secret.StrikeResult(fmt.Sprintf(format, args...))) + "\n")
}

// object prints the result as JSON: a struct's fields one by one, and of its
// lists the items, so that no more than one of them is in memory twice.
func (p *printer) object(v any) {
	whole := reflect.Indirect(reflect.ValueOf(v))
	if whole.Kind() != reflect.Struct || slices.ContainsFunc(reflect.VisibleFields(whole.Type()), isEmbedded) {
		p.write(p.encoded(v, "") + "\n")
		return
	}
	separator := "{\n  "
	for i := range whole.NumField() {
		name, options, _ := strings.Cut(whole.Type().Field(i).Tag.Get("json"), ",")
		field := whole.Field(i)
		if name == "-" || options == "omitempty" && (field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0) {
			continue
		}
		p.write(separator + strconv.Quote(name) + ": ")
		separator = ",\n  "
		if field.Kind() == reflect.Slice && field.Len() > 0 {
			p.list(field)
		} else {
			p.write(p.encoded(field.Interface(), "  "))
		}
	}
	p.write("\n}\n")
}

func isEmbedded(f reflect.StructField) bool { return f.Anonymous }

// list prints the list that a field holds.
func (p *printer) list(items reflect.Value) {
	separator := "[\n    "
	for i := range items.Len() {
		p.write(separator + p.encoded(items.Index(i).Interface(), "    "))
		separator = ",\n    "
	}
	p.write("\n  ]")
}

// encoded returns v as JSON, each line but the first behind prefix.
func (p *printer) encoded(v any, prefix string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, "  ")
	if err := enc.Encode(v); err != nil {
		p.failed = cmp.Or(p.failed, err)
	}
	return strings.TrimSuffix(escapeJSON(secret.StrikeResult(b.String())), "\n")
}

// escapeJSON escapes in JSON what a terminal would not show but do. Outside of
// strings there is nothing of it.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

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
		for _, row := range rows {
			for i := range row {
				row[i] = shorten(row[i], widths[i])
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

func (p *printer) write(text string) {
	if p.failed == nil {
		_, p.failed = io.WriteString(p.out, text)
	}
}

// notef tells what is good to know. -q and --format json silence it.
func (p *printer) notef(format string, args ...any) {
	if !p.quiet && !p.json {
		fmt.Fprintln(p.err, remark(fmt.Sprintf(format, args...)))
	}
}

// remarkf tells what goes on, as progress does.
func (p *printer) remarkf(format string, args ...any) {
	fmt.Fprintln(p.err, remark(fmt.Sprintf(format, args...)))
}

// warnf tells what may be wrong although the command goes on.
func (p *printer) warnf(format string, args ...any) {
	fmt.Fprintln(p.err, "warning: "+remark(fmt.Sprintf(format, args...)))
}

// faultf tells one of several reasons for which the command does not go on; the
// error behind them says what it did.
func (p *printer) faultf(format string, args ...any) {
	fmt.Fprintln(p.err, "error: "+remark(fmt.Sprintf(format, args...)))
}

// hintf tells what can be done.
func (p *printer) hintf(format string, args ...any) {
	fmt.Fprintln(p.err, "hint: "+remark(fmt.Sprintf(format, args...)))
}

// error prints an error and its hints.
func (p *printer) error(err error) {
	fmt.Fprintln(p.err, "carton-oci: "+remark(err.Error()))
	for _, h := range hint.Of(err) {
		p.hintf("%s", h)
	}
}

// remark makes what is printed beside the result fit for one line, and takes the
// secrets out of it.
func remark(text string) string { return oneLine(secret.Strike(text)) }

// quoted writes a value that somebody typed, without what may be secret.
func quoted(s string) string { return strconv.Quote(secret.Redact(s)) }

// count writes a number of things: "1 member", "2 members".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// oneLine makes what we say fit for one line of a terminal: joined errors become
// clauses, anything unprintable its escape.
func oneLine(text string) string {
	return escape(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "; "))
}

// escape makes a value fit for one line of a terminal: what it does not show is
// written as its escape, line ends too.
func escape(text string) string {
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if r == unicode.ReplacementChar && !strings.HasPrefix(text[i:], "\uFFFD") {
			fmt.Fprintf(&b, `\x%02x`, text[i])
		} else if !unicode.IsPrint(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isPlain reports whether a text is nothing but printable ASCII.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
