package main

import (
	"fmt"
	"strings"
	"time"
)

// roff escapes text for a man page: backslashes, dashes that are to stay dashes when
// they are copied, and what at the start of a line would be a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "…",
		"...").Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// filled escapes text, in lines that are no longer than a page's source should be
// unless they stay as they are.
func filled(text string, asIs bool) string {
	if asIs {
		return roff(text)
	}
	lines := strings.Split(wrapped(text, 0, 64), "\n")
	return strings.Join(listOf(lines, roff), "\n")
}

// man writes a man page in the macros of man(7), which every man reads. The date is
// the zero time for none: a page made twice is the same.
func (p *page) man(version string, date time.Time, also []string) string {
	var b strings.Builder
	linef := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	day := ""
	if !date.IsZero() {
		day = date.Format(time.DateOnly)
	}
	title := p.manName()
	linef(`.TH "%s" "1" "%s" "%s" "%s manual"`, roff(strings.ToUpper(title)), day, roff(programName+" "+version),
		roff(programName))
	linef(".SH NAME\n%s \\-\n%s", roff(title), roff(p.does))
	linef(".SH SYNOPSIS\n.nf\n%s\n.fi", roff(p.usage))
	if len(p.examples) > 0 {
		linef(".SH EXAMPLES\n.nf")
		for _, example := range p.examples {
			linef("%s", roff(example))
		}
		linef(".fi")
	}
	if p.text != "" {
		linef(".SH DESCRIPTION")
	}
	b.WriteString(manText(p.text))
	if len(p.commands) > 0 {
		linef(".SH COMMANDS")
	}
	for _, g := range p.commands {
		linef(".SS %s", roff(g.head))
		for _, c := range g.commands {
			linef(".TP\n.BR %s (1)\n%s", roff(programName+"-"+c.Name), roff(c.Usage))
		}
	}
	if len(p.flags) > 0 {
		linef(".SH OPTIONS")
	}
	for i, g := range p.flags {
		if i > 0 {
			linef(".SS %s", roff(g.head))
		}
		for _, f := range g.flags {
			linef(".TP\n.B %s\n%s", roff(flagForms(f)), filled(flagEffect(f), false))
		}
	}
	for i := range also {
		also[i] = ".BR " + roff(also[i]) + " (1)"
	}
	if len(also) > 0 {
		linef(".SH SEE ALSO\n%s", strings.Join(also, ",\n"))
	}
	return b.String()
}

// manText writes paragraphs, and lines that stay as they are.
func manText(text string) string {
	var b strings.Builder
	linef := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for i, part := range blocks(text) {
		switch {
		case part.asIs:
			linef(".RS 4\n.nf")
		case i > 0:
			linef(".PP")
		}
		if !part.asIs {
			part.lines = []string{strings.Join(part.lines, " ")}
		}
		for _, line := range part.lines {
			linef("%s", filled(line, part.asIs))
		}
		if part.asIs {
			linef(".fi\n.RE")
		}
	}
	return b.String()
}

// manName is what man calls the page: "carton-oci-push".
func (p *page) manName() string { return strings.ReplaceAll(p.name, " ", "-") }
