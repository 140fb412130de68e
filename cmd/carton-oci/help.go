package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// appHelp is the help of the program, and commandHelp that of a command, as
// urfave/cli's templates. A command's UsageText holds examples: what most people
// want of it. Flags stand in the order in which they were declared, below the head
// of their category.
const (
	appHelp = `{{.Name}}: {{.Usage}}

usage: {{.UsageText}}

{{.Description}}

{{range .Commands}}{{printf "  %-10s %s" .Name .Usage}}
{{end}}
{{.Name}} help COMMAND says more. Flags may stand before and after arguments.
`
	commandHelp = `{{.HelpName}}: {{.Usage}}

usage: {{.HelpName}} [flags]{{with .ArgsUsage}} {{.}}{{end}}
{{with .UsageText}}
  {{wrap . 2}}
{{end}}{{with .Description}}
{{.}}
{{end}}{{$category := ""}}{{range .Flags}}{{if ne .GetCategory $category}}{{$category = .GetCategory}}
{{$category}}
{{end}}{{flag .}}{{wrap (effect .) 30}}
{{end}}`
)

const (
	helpWidth  = 80 // columns
	flagColumn = 30 // where what a flag does begins
)

// printHelp fills in the templates.
func printHelp(w io.Writer, template string, data any) {
	cli.HelpPrinterCustom(w, template, data, map[string]any{
		"wrapAt": func() int { return helpWidth }, "flag": flagNames, "effect": flagEffect,
	})
}

// flagNames writes "  -o, --output FILE", as wide as its column.
func flagNames(f cli.DocGenerationFlag) string {
	names := f.(cli.Flag).Names()
	text := "      --" + names[0]
	if len(names) > 1 {
		text = "  -" + names[1] + ", --" + names[0]
	}
	if parts := strings.Split(f.GetUsage(), "`"); f.TakesValue() {
		text += " " + parts[1]
	}
	if len(text) > flagColumn-2 {
		text += "\n"
		return text + strings.Repeat(" ", flagColumn)
	}
	return fmt.Sprintf("%-*s", flagColumn, text)
}

// flagEffect says what a flag does, and its default.
func flagEffect(f cli.DocGenerationFlag) string {
	text := strings.ReplaceAll(f.GetUsage(), "`", "")
	if value := strings.Trim(f.GetDefaultText(), `"`); f.TakesValue() && value != "" && value != "0" {
		text += " (default " + value + ")"
	}
	return text
}
