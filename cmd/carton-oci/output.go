package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// All printing happens in this file with what it uses (table.go, json.go,
// escape.go), in progress.go with what it draws on (progress_bars.go, terminal.go),
// and in trace.go, by these rules:
//
//   - Results go to standard output, everything else to standard error.
//   - With --format json a command prints one object on standard output, and on
//     standard error progress, warnings and errors. Names in the object never
//     change their meaning.
//   - -q leaves of the result what a script would want, and of the rest only
//     errors and warnings.
//   - An error is one line, "carton-oci: verb object: what: got X, want Y",
//     followed by "hint:" lines that say what can be done.
//   - Colour on a terminal only, and little (colour.go); no cursor movement except by
//     the progress bars there. Both are drawn here: libraries for bars were measured
//     to leave half lines where Ctrl-C, or a warning, comes in between.
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

// taggedf is linef behind a word in a style.
func (p *printer) taggedf(s style, tag, format string, args ...any) {
	p.write(s.paint(p.out, tag) + escape(secret.StrikeResult(fmt.Sprintf(format, args...))) + "\n")
}

func (p *printer) write(text string) {
	if p.failed == nil {
		_, p.failed = io.WriteString(p.out, text)
	}
}

// result prints what a command found out: with --format json the object, with -q
// the bare lines, else what show prints.
func (p *printer) result(object any, bare []string, show func()) {
	switch {
	case p.json:
		p.object(object)
	case p.quiet:
		for _, line := range bare {
			p.linef("%s", line)
		}
	default:
		show()
	}
}

// notef tells what is good to know. -q and --format json silence it.
func (p *printer) notef(format string, args ...any) {
	if !p.quiet && !p.json {
		p.sayf("", format, args...)
	}
}

// warnf tells what may be wrong although the command goes on.
func (p *printer) warnf(format string, args ...any) {
	p.sayf(styleOdd.paint(p.err, "warning: "), format, args...)
}

// hintf tells what can be done.
func (p *printer) hintf(format string, args ...any) { p.sayf("hint: ", format, args...) }

// hints tells what the library says can be done, by the names of flags.
func (p *printer) hints(hints ...hint.Hint) {
	for _, h := range hints {
		p.hintf("%s", h.Text(commandNames))
	}
}

// sayf prints a line beside the result.
func (p *printer) sayf(prefix, format string, args ...any) {
	fmt.Fprintln(p.err, prefix+remark(fmt.Sprintf(format, args...)))
}

// error prints an error and its hints.
func (p *printer) error(err error) {
	p.sayf(styleBad.paint(p.err, "carton-oci: "), "%v", err)
	p.hints(hint.Of(err)...)
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
