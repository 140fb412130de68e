package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

const (
	helpWidth  = 80 // columns
	flagColumn = 30 // where what a flag does begins
)

// printHelp prints the help of the program or of a command. It takes the place
// of cli's template, whose lines have any width.
func printHelp(w io.Writer, _ string, data any) {
	switch v := data.(type) {
	case *cli.App:
		fmt.Fprintf(w, "%s: %s\n\nusage: %s\n\n%s\n\n", v.Name, v.Usage, v.UsageText, v.Description)
		for _, c := range v.Commands {
			fmt.Fprintf(w, "  %-10s %s\n", c.Name, c.Usage)
		}
		fmt.Fprintf(w, "\n%s help COMMAND says more. Flags may stand before and after arguments.\n", v.Name)
	case *cli.Command:
		usage := strings.TrimSpace(v.HelpName + " [flags] " + v.ArgsUsage)
		fmt.Fprintf(w, "%s: %s\n\nusage: %s\n", v.HelpName, v.Usage, usage)
		if examples := helpExamples[v.Name]; len(examples) > 0 {
			fmt.Fprintf(w, "\n  %s\n", strings.Join(examples, "\n  "))
		}
		if v.Description != "" {
			fmt.Fprintf(w, "\n%s\n", v.Description)
		}
		printFlags(w, v.Flags)
	}
}

// printFlags prints flags by category, in the order in which they were declared.
func printFlags(w io.Writer, flags []cli.Flag) {
	category := "none yet"
	for _, f := range sortedByCategory(flags) {
		if c := categoryOf(f); c != category {
			category = c
			fmt.Fprintf(w, "\n%s\n", c)
		}
		names := flagNames(f)
		if len(names) > flagColumn-2 {
			fmt.Fprintf(w, "%s\n%s", names, strings.Repeat(" ", flagColumn))
		} else {
			fmt.Fprintf(w, "%-*s", flagColumn, names)
		}
		fmt.Fprintln(w, wrap(flagUsage(f), helpWidth-flagColumn, flagColumn))
	}
}

func sortedByCategory(flags []cli.Flag) []cli.Flag {
	order := []string{categoryOwn, categoryReaders, categoryTransfer, categoryLogin, categoryLinks, categoryPack, categoryOutput}
	sorted := slices.Clone(flags)
	slices.SortStableFunc(sorted, func(a, b cli.Flag) int {
		return slices.Index(order, categoryOf(a)) - slices.Index(order, categoryOf(b))
	})
	return sorted
}

func categoryOf(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok && c.GetCategory() != "" {
		return c.GetCategory()
	}
	return categoryOwn
}

// flagNames writes "  -o, --output FILE".
func flagNames(f cli.Flag) string {
	names := slices.Clone(f.Names())
	slices.SortFunc(names, func(a, b string) int { return len(a) - len(b) })
	for i := range names {
		names[i] = flagText(names[i])
	}
	text := strings.Join(names, ", ")
	if len(f.Names()[0]) > 1 && !strings.HasPrefix(text, "--") {
		text = "  " + text
	} else {
		text = "      " + text
	}
	if d, ok := f.(cli.DocGenerationFlag); ok && d.TakesValue() {
		value, _ := unquoteUsage(d.GetUsage())
		text += " " + value
	}
	return text
}

// flagUsage writes what a flag does, and its default.
func flagUsage(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	_, text := unquoteUsage(d.GetUsage())
	if value := strings.Trim(d.GetDefaultText(), `"`); d.TakesValue() && value != "" && value != "0" {
		text += " (default " + value + ")"
	}
	return text
}

// unquoteUsage takes the name of a flag's value, in back quotes, out of its
// usage.
func unquoteUsage(usage string) (name, text string) {
	before, rest, ok := strings.Cut(usage, "`")
	if !ok {
		return "VALUE", usage
	}
	name, after, _ := strings.Cut(rest, "`")
	return name, before + name + after
}

// wrap breaks text into lines of at most width columns; all but the first are
// indented.
func wrap(text string, width, indent int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
