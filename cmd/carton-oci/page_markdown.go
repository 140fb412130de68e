package main

import (
	"fmt"
	"strings"
)

// markdown writes the part of docs/commands.md that is about a command.
func (p *page) markdown() string {
	var b strings.Builder
	linef := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	linef("## %s\n\n%s.\n\n```\n%s\n```", strings.TrimPrefix(p.name, programName+" "),
		strings.ToUpper(p.does[:1])+p.does[1:], p.usage)
	if len(p.examples) > 0 {
		linef("\nFor example:\n\n```\n%s\n```", strings.Join(p.examples, "\n"))
	}
	for _, part := range blocks(p.text) {
		if part.asIs {
			linef("\n```\n%s\n```", strings.Join(part.lines, "\n"))
			continue
		}
		linef("\n%s", prose(strings.Join(part.lines, "\n")))
	}
	for _, g := range p.flags {
		linef("\n| %s | |\n|---|---|", g.head)
		for _, f := range g.flags {
			linef("| `%s` | %s |", flagForms(f), strings.ReplaceAll(prose(flagEffect(f)), "|", `\|`))
		}
	}
	return b.String()
}

// prose keeps what is meant as it is written from being taken for Markdown.
func prose(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`).Replace(text)
}
