package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/urfave/cli/v2"
)

// normalize rewrites a command line so that urfave/cli, which stops looking for
// flags at the first argument, understands flags wherever they stand:
//
//	push m.carton -q host/repo:1 --annotation k=v
//	push --quiet=true --annotation=k=v -- m.carton host/repo:1
//
// It knows which flags take a value from the command's own flags, so no second
// list can go stale. Its rules:
//
//   - "--" ends flags; everything behind it is an argument, as is a lone "-";
//   - a flag that takes a value takes what follows its "=", or else the next
//     word, whatever that looks like ("--bundle-below -1");
//   - flags before the command's name belong to the command;
//   - "-name" is "--name";
//   - "help push" is "push --help".
//
// args does not hold the program's name; neither does what is returned.
func normalize(app *cli.App, args []string) ([]string, error) {
	name, before, after := findCommand(app, args)
	switch cmd := app.Command(name); {
	case name == "":
		return bareFlags(app, before)
	case name == "help" && len(after) == 0:
		return []string{"--help"}, nil
	case name == "help":
		return normalize(app, []string{after[0], "--help"})
	case cmd == nil:
		return nil, unknownCommand(app, name)
	default:
		flags, rest, err := splitFlags(cmd, append(before, after...))
		if err != nil {
			return nil, err
		}
		if slices.Contains(flags, "--help=true") {
			// cli would take the arguments for names of help topics.
			return []string{cmd.Name, "--help"}, nil
		}
		out := append([]string{cmd.Name}, flags...)
		return append(append(out, "--"), rest...), nil
	}
}

// findCommand returns the first word that is no flag and no flag's value, and
// the words around it.
func findCommand(app *cli.App, args []string) (name string, before, after []string) {
	var all []cli.Flag
	for _, c := range app.Commands {
		all = append(all, c.Flags...)
	}
	for i := 0; i < len(args); i++ {
		if !isFlag(args[i]) {
			return args[i], args[:i:i], args[i+1:]
		}
		flag, _, hasValue := cutFlag(args[i])
		if f := lookupFlag(all, flag); f != nil && takesValue(f) && !hasValue {
			i++
		}
	}
	return "", args, nil
}

// bareFlags is for a command line without a command, which may ask for --help
// or --version.
func bareFlags(app *cli.App, args []string) ([]string, error) {
	own := []cli.Flag{cli.HelpFlag, cli.VersionFlag}
	for _, word := range args {
		if name, _, _ := cutFlag(word); lookupFlag(own, name) != nil {
			return []string{"--" + name}, nil
		}
	}
	err := usagef("", "want a command")
	return nil, withHint(err, "%s --help lists the commands", app.Name)
}

// splitFlags tells a command's flags from its arguments. Every flag comes back
// as one word, --name=value, under the first of its names: cli refuses one flag
// under two names.
func splitFlags(cmd *cli.Command, args []string) (flags, rest []string, err error) {
	known := slices.Concat(cmd.Flags, []cli.Flag{cli.HelpFlag})
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "--" {
			return flags, append(rest, args[i+1:]...), nil
		}
		if !isFlag(word) {
			rest = append(rest, word)
			continue
		}
		name, value, hasValue := cutFlag(word)
		f := lookupFlag(known, name)
		switch {
		case f == nil:
			return nil, nil, unknownFlag(cmd, known, name)
		case hasValue:
		case !takesValue(f):
			value = "true"
		case i+1 == len(args):
			return nil, nil, usagef(cmd.Name, "%s wants a value", flagText(name))
		default:
			i++
			value = args[i]
		}
		if want := wantedValue(f, value); want != "" {
			return nil, nil, usagef(cmd.Name, "%s: got %s, want %s", flagText(name), quoted(value), want)
		}
		flags = append(flags, "--"+f.Names()[0]+"="+value)
	}
	return flags, rest, nil
}

// isFlag reports whether a word is written like a flag.
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' && word != "--" }

// cutFlag splits --name=value.
func cutFlag(word string) (name, value string, hasValue bool) {
	return strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
}

// flagText writes a flag's name as people write it.
func flagText(name string) string {
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

// wantedValue returns what a flag's value should be, "" where it is that. cli
// would say no more than "parse error".
func wantedValue(f cli.Flag, value string) string {
	var err error
	var want string
	switch f.(type) {
	case *cli.BoolFlag:
		_, err = strconv.ParseBool(value)
		want = "true or false"
	case *cli.IntFlag:
		_, err = strconv.ParseInt(value, 0, strconv.IntSize)
		want = "a whole number"
	case *cli.Uint64Flag:
		_, err = strconv.ParseUint(value, 0, 64)
		want = "a whole number, 0 or more"
	case *cli.DurationFlag:
		_, err = time.ParseDuration(value)
		want = "a duration such as 90s or 2m"
	}
	if err == nil {
		return ""
	}
	return want
}

func unknownFlag(cmd *cli.Command, known []cli.Flag, name string) error {
	var names []string
	for _, f := range known {
		names = append(names, f.Names()...)
	}
	err := usagef(cmd.Name, "unknown flag %s", flagText(secret.Redact(name)))
	if advice := adviseFlag(cmd, known, name); advice != "" {
		return withHint(err, "%s", hint.Text(advice))
	}
	if like := nearest(name, names); like != "" {
		err = withHint(err, "did you mean %s?", flagText(like))
	}
	return err
}

func unknownCommand(app *cli.App, name string) error {
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.Names()...)
	}
	err := usagef("", "unknown command %s", secret.Redact(name))
	if advice, ok := otherCommands[name]; ok {
		return withHint(err, "%s", hint.Text(advice))
	}
	if like := nearest(name, names); like != "" {
		return withHint(err, "did you mean %s?", like)
	}
	return withHint(err, "%s --help lists the commands", app.Name)
}

// nearest returns the name that word is most likely a misspelling of: the one
// with the fewest letters to mend, at most a third of the longer one's. "" where
// nothing is near.
func nearest(word string, names []string) string {
	best, least := "", len(word)
	for _, name := range names {
		d := distance(word, name)
		if d < least && d*3 <= max(len(word), len(name)) {
			best, least = name, d
		}
	}
	return best
}

// distance is the least number of letters to insert, delete, change or swap
// with their neighbour to make b of a (optimal string alignment), in bytes.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
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
