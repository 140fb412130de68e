package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// What is told of a command is one page (page.go). Help, man pages and
// docs/commands.md show that page; nothing is said in one of them alone.

const (
	helpWidth  = 80 // columns
	flagColumn = 30 // where what a flag does begins
)

// everyDay are the flags on top of a command's help: ten at most, what most people
// want of it. Of a command that is not here they are its own, --quiet and --format.
// The others are shown by --help --all.
var everyDay = map[string][]string{
	"push": {
		"runner", "framework-version", "image", "annotation", "git", "no-clobber", "dry-run", "sign-key", "quiet",
		"format",
	},
	"pull": {"output", "output-dir", "unpack", "include", "from", "force", "model-hash", "key", "quiet", "format"},
	"cp":   {"recursive", "no-clobber", "force", "dry-run", "model-hash", "quiet", "format"},
	"pack": {"output", "runner", "framework-version", "opt", "name", "license", "exclude", "force", "quiet", "format"},

	"verify": {
		"links", "no-content", "content", "model-hash", "key", "certificate-chain", "signature", "quiet",
		"format",
	},
	"sign":   {"key", "output", "force", "cert", "chain", "quiet", "format"},
	"login":  {"username", "password-stdin", "registry-config", "plain-http"},
	"logout": {"registry-config"},
}

// isEveryDay reports whether a flag is shown by --help without --all.
func isEveryDay(cmd *cli.Command, f cli.Flag) bool {
	name := f.Names()[0]
	if names, ok := everyDay[cmd.Name]; ok {
		return slices.Contains(names, name)
	}
	return name == "quiet" || name == "format" || f.(cli.CategorizableFlag).GetCategory() == ownFlags
}

// helpPrinter is cli's hook for help; it heeds none of cli's templates. all is
// whether every flag is asked for.
func helpPrinter(all func() bool) func(io.Writer, string, any) {
	return func(w io.Writer, _ string, about any) {
		switch about := about.(type) {
		case *cli.App:
			_, _ = io.WriteString(w, appPage(about).help(true))
		case *cli.Command:
			_, _ = io.WriteString(w, commandPage(about).help(all()))
		}
	}
}

// help writes a page for a terminal, as wide as people still make theirs.
func (p *page) help(all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nusage: %s\n", p.name, p.does, p.usage)
	if len(p.examples) > 0 {
		b.WriteString("\n")
	}
	for _, example := range p.examples {
		b.WriteString("  " + example + "\n")
	}
	for _, g := range p.commands {
		b.WriteString("\n" + g.head + "\n")
		for _, c := range g.commands {
			fmt.Fprintf(&b, "  %-11s %s\n", c.Name, c.Usage)
		}
	}
	if p.text != "" {
		b.WriteString("\n" + p.text + "\n")
	}
	var more []string
	for i, g := range p.flags {
		if i > 0 && !all {
			more = append(more, fmt.Sprintf("  %s (%d)\n", g.head, len(g.flags)))
			continue
		}
		b.WriteString("\n" + g.head + "\n")
		for _, f := range g.flags {
			b.WriteString(flagNames(f) + wrapped(flagEffect(f), flagColumn, helpWidth) + "\n")
		}
	}
	if len(more) > 0 {
		b.WriteString("\nmore flags, by " + p.name + " --help --all\n" + strings.Join(more, ""))
	}
	if p.end != "" {
		b.WriteString("\n" + p.end + "\n")
	}
	return b.String()
}

// flagNames writes "  -o, --output FILE", as wide as its column.
func flagNames(f cli.DocGenerationFlag) string {
	text := "      " + flagForms(f)
	if strings.Contains(text, " -") && len(f.(cli.Flag).Names()) > 1 {
		text = "  " + flagForms(f)
	}
	if len(text) > flagColumn-2 {
		return text + "\n" + strings.Repeat(" ", flagColumn)
	}
	return fmt.Sprintf("%-*s", flagColumn, text)
}

// flagForms writes "-o, --output FILE".
func flagForms(f cli.DocGenerationFlag) string {
	names := f.(cli.Flag).Names()
	text := "--" + names[0]
	if len(names) > 1 {
		text = "-" + names[1] + ", " + text
	}
	if parts := strings.Split(f.GetUsage(), "`"); f.TakesValue() {
		text += " " + parts[1]
	}
	return text
}

// flagEffect says what a flag does, and its default.
func flagEffect(f cli.DocGenerationFlag) string {
	text := strings.ReplaceAll(f.GetUsage(), "`", "")
	if value := strings.Trim(f.GetDefaultText(), `"`); f.TakesValue() && value != "" && value != "0" {
		text += " (default " + value + ")"
	}
	return text
}

// wrapped breaks text into lines of at most width columns, of which those behind the
// first are indented, and the first one is taken to be.
func wrapped(text string, indent, width int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// wantAllFlags keeps for the help whether --all stands beside --help.
func wantAllFlags(app *cli.App, flags []givenFlag) {
	if slices.ContainsFunc(flags, func(f givenFlag) bool { return f.name == "all" }) {
		app.Metadata[allFlags] = true
	}
}

const allFlags = "all flags"
