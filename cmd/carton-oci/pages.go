package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
)

// pagesWord is the command that `make man` and `make docs` run:
//
//	carton-oci __pages man DIR             a man page a command
//	carton-oci __pages markdown FILE       docs/commands.md
//	carton-oci __pages completion DIR      the scripts, as packages install them
const pagesWord = "__pages"

func writePages(app *cli.App, args []string) error {
	if len(args) != 2 {
		return usagef(pagesWord, "got %s, want FORM PATH", count(len(args), "argument"))
	}
	form, path := args[0], args[1]
	switch form {
	case "man":
		return writeMan(app, path)
	case "markdown":
		return os.WriteFile(path, []byte(commandsPage(app)), 0o644)
	case "completion":
		return writeCompletions(path)
	}
	return usagef(pagesWord, "got %s, want man, markdown or completion", quoted(form))
}

// pagesOf returns the program's page and those of its commands.
func pagesOf(app *cli.App) (about *page, commands []*page) {
	for _, cmd := range app.Commands {
		if !cmd.Hidden {
			commands = append(commands, commandPage(cmd))
		}
	}
	return appPage(app), commands
}

func writeMan(app *cli.App, dir string) error {
	date, err := created()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	about, commands := pagesOf(app)
	for _, p := range append(commands, about) {
		also := []string{programName}
		if p == about {
			also = nil
		}
		text := p.man(app.Version, date, also)
		if err := os.WriteFile(filepath.Join(dir, p.manName()+".1"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// commandsPage is docs/commands.md.
func commandsPage(app *cli.App) string {
	about, commands := pagesOf(app)
	var b strings.Builder
	b.WriteString("<!-- made by make docs of what --help shows: change cmd/carton-oci -->\n\n# Commands\n\n")
	b.WriteString("Every command and flag, as `--help --all` and the man pages have them. Flags may stand before " +
		"and after arguments.\n")
	for _, part := range blocks(about.text) {
		if part.asIs {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.Join(part.lines, "\n"))
		} else {
			fmt.Fprintf(&b, "\n%s\n", prose(strings.Join(part.lines, "\n")))
		}
	}
	for _, g := range about.commands {
		fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n", g.head)
		for _, c := range g.commands {
			fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.Name, c.Name, c.Usage)
		}
	}
	for _, p := range commands {
		b.WriteString("\n" + p.markdown())
	}
	return b.String()
}

// writeCompletions writes the scripts under the names by which shells find them.
func writeCompletions(dir string) error {
	for shell, name := range map[string]string{
		"bash": programName, "zsh": "_" + programName, "fish": programName + ".fish",
		"powershell": programName + ".ps1",
	} {
		script, err := completionScripts.ReadFile("completion/" + shell)
		if err != nil {
			return err
		}
		into := filepath.Join(dir, shell)
		if err := os.MkdirAll(into, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, name), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}
