package main

import (
	"flag"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder puts the flags of a command line before its arguments, because
// urfave/cli stops looking for flags at the first argument:
//
//	push m.carton -q host/repo:1 --annotation k=v
//	push --quiet=true --annotation=k=v -- m.carton host/repo:1
//
// Its rules:
//
//   - "--" ends flags; everything behind it is an argument, as is a lone "-";
//   - a flag that takes a value takes what follows its "=", or else the next
//     word, whatever that looks like ("--bundle-below -1");
//   - flags before the command's name belong to the command;
//   - "-name" is "--name";
//   - "help push" is "push --help".
//
// words does not hold the program's name; neither does what is returned.
func reorder(app *cli.App, words []string) ([]string, error) {
	flags, args := splitFlags(app, words)
	for len(args) > 0 && args[0] == "help" {
		flags, args = append(flags, givenFlag{name: "help"}), args[1:]
	}
	if len(args) == 0 {
		return withoutCommand(app, flags)
	}
	cmd := app.Command(args[0])
	if cmd == nil {
		return nil, unknownCommand(app, args[0])
	}
	asked := func(f givenFlag) bool { return lookupFlag([]cli.Flag{cli.HelpFlag}, f.name) != nil }
	if slices.ContainsFunc(flags, asked) {
		// Nothing else of the line counts, and cli would take arguments for names.
		wantAllFlags(app, flags)
		return []string{cmd.Name, "--help"}, nil
	}
	line := []string{cmd.Name}
	for _, given := range flags {
		word, err := given.check(cmd)
		if err != nil {
			return nil, err
		}
		line = append(line, word)
	}
	return append(append(line, "--"), args[1:]...), nil
}

// withoutCommand is for a command line without a command, which may ask for
// --help or --version.
func withoutCommand(app *cli.App, flags []givenFlag) ([]string, error) {
	for _, given := range flags {
		if f := lookupFlag([]cli.Flag{cli.HelpFlag, cli.VersionFlag}, given.name); f != nil {
			return []string{"--" + f.Names()[0]}, nil
		}
	}
	return nil, withHint(usagef("", "want a command"), "%s --help lists the commands", app.Name)
}

// givenFlag is a flag as it was written.
type givenFlag struct {
	name, value string
	hasValue    bool
}

// splitFlags tells flags from arguments. Which flags take a value is known from
// the flags of all commands together: the command's name may stand behind them.
func splitFlags(app *cli.App, words []string) (flags []givenFlag, args []string) {
	var known []cli.Flag
	for _, c := range app.Commands {
		known = append(known, c.Flags...)
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			return flags, append(args, words[i+1:]...)
		}
		if len(word) < 2 || word[0] != '-' {
			args = append(args, word)
			continue
		}
		var given givenFlag
		given.name, given.value, given.hasValue = strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
		f := lookupFlag(known, given.name)
		if f != nil && takesValue(f) && !given.hasValue && i+1 < len(words) {
			i++
			given.value, given.hasValue = words[i], true
		}
		flags = append(flags, given)
	}
	return flags, args
}

// check returns a flag of cmd as one word, --name=value, under the first of its
// names: cli refuses one flag under two names.
func (g givenFlag) check(cmd *cli.Command) (string, error) {
	f := lookupFlag(append(slices.Clone(cmd.Flags), cli.HelpFlag), g.name)
	switch {
	case f == nil:
		return "", unknownFlag(cmd, g.name)
	case !g.hasValue && takesValue(f):
		return "", usagef(cmd.Name, "%s wants a value", dashed(g.name))
	case !g.hasValue:
		g.value = "true"
	case g.value == "":
		// Most likely a shell variable that is not set.
		return "", usagef(cmd.Name, "%s is empty", dashed(g.name))
	}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	if err := f.Apply(set); err != nil {
		return "", err
	}
	if set.Set(g.name, g.value) != nil {
		return "", usagef(cmd.Name, "%s: got %s, want %s", dashed(g.name), quoted(g.value), wantedValue(f))
	}
	return "--" + f.Names()[0] + "=" + g.value, nil
}

// wantedValue says what a flag's value should be. cli would say no more than
// "parse error".
func wantedValue(f cli.Flag) string {
	switch f.(type) {
	case *cli.BoolFlag:
		return "true or false"
	case *cli.DurationFlag:
		return "a duration such as 90s or 2m"
	case *cli.Uint64Flag:
		return "a whole number, 0 or more"
	default:
		return "a whole number"
	}
}

// dashed writes a flag's name as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func lookupFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// wantUsage checks that a command was given what its usage names. One that takes
// more or fewer arguments checks that itself.
func wantUsage(c *cli.Context) error {
	if usage := c.Command.ArgsUsage; !strings.Contains(usage, " [") && !strings.HasSuffix(usage, "...") {
		return wantArgs(c, strings.Fields(usage)...)
	}
	return nil
}

// wantArgs checks how many arguments a command was given; names are what its
// usage calls them.
func wantArgs(c *cli.Context, names ...string) error {
	if c.NArg() == len(names) {
		return nil
	}
	want := strings.Join(names, " ")
	if want == "" {
		want = "none"
	}
	err := usagef(c.Command.Name, "got %s, want %s", count(c.NArg(), "argument"), want)
	return withHint(err, "carton-oci %s --help", c.Command.Name)
}
