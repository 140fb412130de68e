package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// page is what is told of the program or one of its commands: of what urfave/cli
// was told of it. A command's UsageText holds examples, and its Description
// paragraphs, of which indented lines stay as they are.
type page struct {
	name     string // "carton-oci push"
	does     string // in a few words
	usage    string
	examples []string
	text     string
	commands []commandGroup // of the program
	flags    []flagGroup    // the first are those of every day
	end      string
}

type commandGroup struct {
	head     string
	commands []*cli.Command
}

type flagGroup struct {
	head  string
	flags []cli.DocGenerationFlag
}

// The heads of flags, named for who needs them, in their order.
const (
	ownFlags     = "flags"
	forPart      = "for a part of a model"
	forForm      = "for the form in the registry"
	forReaders   = "for clusters and other programs that read it"
	whatIsPacked = "for files that are no carton yet"
	forSigned    = "for what is signed"
	forPlain     = "for models that are no carton"
	forThin      = "for thin cartons"
	forLines     = "for slow lines and large models"
	forLogin     = "for registries with a login, or certificates of their own"
	forScripts   = "for scripts and logs"
)

var flagHeads = []string{
	ownFlags, whatIsPacked, forPart, forReaders, forForm, forSigned, forPlain, forThin, forLogin, forLines, forScripts,
}

// appPage tells of the program.
func appPage(app *cli.App) *page {
	p := &page{
		name: app.Name, does: app.Usage, usage: app.UsageText, text: app.Description,
		examples: []string{
			"carton-oci pack model.pt --framework-version =2.0.1",
			"carton-oci push model.carton ghcr.io/org/m:1",
			"carton-oci pull ghcr.io/org/m:1 -o model.carton",
			"carton-oci inspect ghcr.io/org/m:1",
		},
		end: app.Name + " COMMAND --help says more of a command, and --help --all all of it.\n" +
			"Flags may stand before and after arguments.",
	}
	for _, cmd := range app.VisibleCommands() {
		if cmd.Name == "help" {
			continue
		}
		i := slices.IndexFunc(p.commands, func(g commandGroup) bool { return g.head == cmd.Category })
		if i < 0 {
			i = len(p.commands)
			p.commands = append(p.commands, commandGroup{head: cmd.Category})
		}
		p.commands[i].commands = append(p.commands[i].commands, cmd)
	}
	return p
}

// commandPage tells of a command.
func commandPage(cmd *cli.Command) *page {
	p := &page{name: programName + " " + cmd.Name, does: cmd.Usage, text: cmd.Description}
	p.usage = strings.TrimSpace(p.name + " [flags] " + cmd.ArgsUsage)
	if cmd.UsageText != "" {
		p.examples = strings.Split(cmd.UsageText, "\n")
	}
	p.flags = []flagGroup{{head: ownFlags}} // of every day
	for _, f := range cmd.Flags {
		head := f.(cli.CategorizableFlag).GetCategory()
		if head == "" {
			continue // cli adds a --help of its own
		}
		if isEveryDay(cmd, f) {
			head = ownFlags
		}
		i := slices.IndexFunc(p.flags, func(g flagGroup) bool { return g.head == head })
		if i < 0 {
			i = len(p.flags)
			p.flags = append(p.flags, flagGroup{head: head})
		}
		p.flags[i].flags = append(p.flags[i].flags, f.(cli.DocGenerationFlag))
	}
	slices.SortStableFunc(p.flags, func(a, b flagGroup) int {
		return cmp.Compare(slices.Index(flagHeads, a.head), slices.Index(flagHeads, b.head))
	})
	if order := everyDay[cmd.Name]; order != nil {
		slices.SortFunc(p.flags[0].flags, func(a, b cli.DocGenerationFlag) int {
			return cmp.Compare(slices.Index(order, a.(cli.Flag).Names()[0]),
				slices.Index(order, b.(cli.Flag).Names()[0]))
		})
	}
	return p
}

// block is a part of a page's text: a paragraph, or lines that stay as they are.
type block struct {
	lines []string
	asIs  bool // without the indent that all of them have
}

// blocks cuts text into its parts.
func blocks(text string) []block {
	var out []block
	open := false
	for line := range strings.SplitSeq(text, "\n") {
		asIs := strings.HasPrefix(line, "  ")
		if line == "" {
			open = false
			continue
		}
		if !open || out[len(out)-1].asIs != asIs {
			out = append(out, block{asIs: asIs})
			open = true
		}
		last := &out[len(out)-1]
		last.lines = append(last.lines, strings.TrimPrefix(line, "  "))
	}
	return out
}
