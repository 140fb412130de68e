package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

// testApp has a command with flags of every sort, and records what it got.
func testApp(got *call) *cli.App {
	return &cli.App{
		Name: "x", Writer: io.Discard, ErrWriter: io.Discard, DisableSliceFlagSeparator: true,
		ExitErrHandler: func(*cli.Context, error) {},
		Commands: []*cli.Command{{
			Name: "go", HideHelpCommand: true,
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
				&cli.StringSliceFlag{Name: "annotation"},
				&cli.IntFlag{Name: "n"},
			},
			Action: func(c *cli.Context) error {
				*got = call{
					Args: c.Args().Slice(), Quiet: c.Bool("quiet"), Output: c.String("output"),
					Annotations: c.StringSlice("annotation"), N: c.Int("n"),
				}
				return nil
			},
		}, {Name: "other", Flags: []cli.Flag{&cli.StringFlag{Name: "only-here"}}}},
	}
}

type call struct {
	Args        []string
	Quiet       bool
	Output      string
	Annotations []string
	N           int
}

func TestFlagsStandAnywhere(t *testing.T) {
	for line, want := range map[string]call{
		"go a b":                             {Args: []string{"a", "b"}},
		"go -q a b":                          {Args: []string{"a", "b"}, Quiet: true},
		"go a -q b":                          {Args: []string{"a", "b"}, Quiet: true},
		"go a b -q":                          {Args: []string{"a", "b"}, Quiet: true},
		"-q go a b":                          {Args: []string{"a", "b"}, Quiet: true},
		"--output go go a":                   {Args: []string{"a"}, Output: "go"},
		"go a -o f b":                        {Args: []string{"a", "b"}, Output: "f"},
		"go a b --output f":                  {Args: []string{"a", "b"}, Output: "f"},
		"go a b -output=f":                   {Args: []string{"a", "b"}, Output: "f"},
		"go a --output=x=y b":                {Args: []string{"a", "b"}, Output: "x=y"},
		"go a -o -q b":                       {Args: []string{"a", "b"}, Output: "-q"},
		"go a -o -- b":                       {Args: []string{"a", "b"}, Output: "--"},
		"go a -n -1 b":                       {Args: []string{"a", "b"}, N: -1},
		"go -n=-1 a":                         {Args: []string{"a"}, N: -1},
		"go -- -q b":                         {Args: []string{"-q", "b"}},
		"go a -q -- -o --":                   {Args: []string{"a", "-o", "--"}, Quiet: true},
		"go - a":                             {Args: []string{"-", "a"}},
		"go a -q=false":                      {Args: []string{"a"}},
		"go a -o 1 --output 2":               {Args: []string{"a"}, Output: "2"},
		"go a --annotation k=a,b":            {Args: []string{"a"}, Annotations: []string{"k=a,b"}},
		"go --annotation a x --annotation b": {Args: []string{"x"}, Annotations: []string{"a", "b"}},
		"go help":                            {Args: []string{"help"}},
		"go output":                          {Args: []string{"output"}},
	} {
		var got call
		app := testApp(&got)
		words, err := reorder(app, strings.Fields(line))
		if err == nil {
			err = app.Run(append([]string{"x"}, words...))
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", line, diff)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                   "want a command",
		"-q":                 "want a command",
		"gone":               "unknown command gone",
		"go --quite a":       "go: unknown flag --quite",
		"go a --quite=1":     "go: unknown flag --quite",
		"go a --annotation":  "go: --annotation wants a value",
		"go a -o":            "go: -o wants a value",
		"go a --only-here v": "go: unknown flag --only-here",
		"go -1":              "go: unknown flag -1",
		"go --=x":            "go: unknown flag --",
		"help gone":          "unknown command gone",
		"go --n x":           `go: -n: got "x", want a whole number`,
		"go --n=":            "go: -n is empty",
		"go a --output= b":   "go: --output is empty",
		"go -q=maybe":        `go: -q: got "maybe", want true or false`,
	} {
		_, err := reorder(testApp(new(call)), strings.Fields(line))
		if !errors.Is(err, errUsage) || err.Error() != want {
			t.Errorf("%q: got %v, want a usage error: %s", line, err, want)
		}
	}
}

func TestSuggestions(t *testing.T) {
	for line, want := range map[string]string{
		"gou":          "did you mean go?",
		"go --quite":   "did you mean --quiet?",
		"go --outpt x": "did you mean --output?",
		"go --hlep":    "did you mean --help?",
	} {
		_, err := reorder(testApp(new(call)), strings.Fields(line))
		if hints := fmt.Sprint(hint.Of(err)); hints != "["+want+"]" {
			t.Errorf("%s: got the hints %q, want %q", line, hints, want)
		}
	}
	_, err := reorder(testApp(new(call)), []string{"go", "--zzz"})
	if hints := hint.Of(err); len(hints) != 0 {
		t.Errorf("--zzz: got the hints %q, want none", hints)
	}
}

func TestHelpAndVersionNeedNoArguments(t *testing.T) {
	for line, want := range map[string]string{
		"--help":         "--help",
		"-h":             "--help",
		"-q --version":   "--version",
		"help go":        "go --help",
		"help":           "--help",
		"help help":      "--help",
		"go --help":      "go --help",
		"go a b -h":      "go --help",
		"go -- --help":   "go -- --help",
		"go -o --help a": "go --output=--help -- a",
	} {
		words, err := reorder(testApp(new(call)), strings.Fields(line))
		if got := strings.Join(words, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
}

// Flags before a command's name are told from their values by the flags of all
// commands together: no name may take a value in one and none in another.
func TestOneNameOneSortOfFlag(t *testing.T) {
	takes := map[string]bool{}
	app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
	for _, cmd := range app.Commands {
		for _, f := range cmd.Flags {
			for _, name := range f.Names() {
				if before, seen := takes[name]; seen && before != takesValue(f) {
					t.Errorf("%s of %s takes a value in one command and none in another", name, cmd.Name)
				}
				takes[name] = takesValue(f)
			}
		}
	}
	if len(takes) < 10 {
		t.Errorf("got %d flags in all commands, want more: is this test looking at them?", len(takes))
	}
}

// Whatever the words, what comes back means the same when it is read again.
func FuzzReorder(f *testing.F) {
	for _, s := range []string{"go a -q b", "go --output=x -- -q", "-q go", "go -o", "help x", "--", "go -o= - --"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		app := testApp(new(call))
		once, err := reorder(app, strings.Fields(line))
		if err != nil {
			if !errors.Is(err, errUsage) {
				t.Fatalf("%q: got %v, want a usage error", line, err)
			}
			return
		}
		twice, err := reorder(app, once)
		if err != nil || !slices.Equal(once, twice) {
			t.Fatalf("%q: got %q, which reads as %q, %v", line, once, twice, err)
		}
	})
}
