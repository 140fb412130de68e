package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"
)

// Completion. The script of a shell (completion/) runs
//
//	carton-oci __complete =WORD BEFORE…
//
// where WORD is what is being typed, behind "=" so that no shell drops an empty one,
// and BEFORE the words before it, without the program's name. It prints a line for
// each word that can stand there, with what it is behind a tab, and then, where that
// applies,
//
//	:nospace            another word follows without a space
//	:files [.END…]      so do names of files, those that end so and folders first
//	:dirs               so do names of folders
//
// What is asked for is what the command's usage and the flag's placeholder name: REF
// is a reference, FILE a file. Nothing is ever printed to standard error, and nobody
// waits longer than completionWait.
//
// urfave/cli has completions too. Its script for bash evaluates what was typed, and
// needs the package bash-completion; none of its scripts knows values, files or
// references.
const completeWord = "__complete"

// completionWait is how long a registry is waited for. Tests change it.
var completionWait = 2 * time.Second

// completionMost is how many words are offered at most: nobody reads more.
const completionMost = 1000

// completions are what a word can be.
type completions struct {
	cur     string
	words   []string // with what they are behind a tab
	nospace bool
	files   []string // ends of their names, where files can stand there
	anyFile bool
	dirs    bool
}

// offer adds a word, if it goes on from what is typed and is fit for a terminal.
func (c *completions) offer(word, what string) {
	if !strings.HasPrefix(word, c.cur) || word == "" || len(c.words) >= completionMost ||
		strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return
	}
	if what = escape(what); what != "" {
		word += "\t" + what
	}
	if !slices.Contains(c.words, word) {
		c.words = append(c.words, word)
	}
}

func (c *completions) offerAll(words ...string) {
	for _, w := range words {
		c.offer(w, "")
	}
}

func (c *completions) print(w io.Writer) {
	lines := slices.Clone(c.words)
	if c.nospace {
		lines = append(lines, ":nospace")
	}
	switch {
	case c.anyFile:
		lines = append(lines, ":files")
	case len(c.files) > 0:
		lines = append(lines, ":files "+strings.Join(c.files, " "))
	case c.dirs:
		lines = append(lines, ":dirs")
	}
	for _, line := range lines {
		_, _ = io.WriteString(w, line+"\n")
	}
}

// complete is `carton-oci __complete`.
func (s *session) complete(ctx context.Context, app *cli.App, words []string) {
	if len(words) == 0 || !strings.HasPrefix(words[0], "=") {
		return
	}
	out := s.out
	s.printer = &printer{out: io.Discard, err: io.Discard}
	app.Writer, app.ErrWriter = io.Discard, io.Discard
	ctx, stop := context.WithTimeout(ctx, completionWait)
	defer stop()
	c := &completions{cur: words[0][1:]}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.completeWord(ctx, app, c, words[1:])
	}()
	select {
	case <-done:
		c.print(out)
	case <-ctx.Done(): // whatever it is that does not end
		select {
		case <-done:
			c.print(out)
		case <-time.After(completionWait / 10):
		}
	}
}

// completeWord says what the word behind others can be.
func (s *session) completeWord(ctx context.Context, app *cli.App, c *completions, before []string) {
	flags, args, open := splitBefore(app, before)
	for len(args) > 0 && args[0] == "help" {
		args, open = args[1:], nil
	}
	var cmd *cli.Command
	if len(args) > 0 {
		if cmd = app.Command(args[0]); cmd == nil {
			return
		}
		args = args[1:]
	}
	isFlag := strings.HasPrefix(c.cur, "-") && !slices.Contains(before, "--")
	var ask func(context.Context, *cli.Context)
	switch {
	case open != nil:
		ask = func(ctx context.Context, _ *cli.Context) { s.completeValue(ctx, c, open) }
	case cmd == nil && isFlag:
		c.offerAll("--help", "--version")
	case cmd == nil:
		for _, cmd := range app.VisibleCommands() {
			c.offer(cmd.Name, cmd.Usage)
		}
	case isFlag:
		name, value, cut := strings.Cut(strings.TrimLeft(c.cur, "-"), "=")
		if f := lookupFlag(cmd.Flags, name); cut && f != nil && takesValue(f) {
			head := c.cur[:len(c.cur)-len(value)]
			ask = func(ctx context.Context, _ *cli.Context) {
				c.cur = value
				s.completeValue(ctx, c, f)
				c.cur, c.files, c.anyFile, c.dirs = head+value, nil, false, false
				for i := range c.words {
					c.words[i] = head + c.words[i]
				}
			}
			break
		}
		c.offerFlags(cmd, flags)
	default:
		ask = func(ctx context.Context, cc *cli.Context) { s.completeArgument(ctx, c, cc.Command, args) }
	}
	if ask != nil && cmd != nil {
		s.withFlags(ctx, app, cmd, flags, ask)
	}
}

// splitBefore is splitFlags for words that go on: open is the flag that the next
// word is the value of.
func splitBefore(app *cli.App, before []string) (flags []givenFlag, args []string, open cli.Flag) {
	flags, args = splitFlags(app, before)
	if len(flags) == 0 || slices.Contains(before, "--") {
		return flags, args, nil
	}
	last := flags[len(flags)-1]
	if last.hasValue || before[len(before)-1] != dashed(last.name) && before[len(before)-1] != "-"+last.name {
		return flags, args, nil
	}
	for _, cmd := range app.Commands {
		if f := lookupFlag(cmd.Flags, last.name); f != nil && takesValue(f) {
			return flags[:len(flags)-1], args, f
		}
	}
	return flags, args, nil
}

// withFlags makes the session ready as the flags of a command that are there
// already say, and calls ask. What is wrong with them is not said here.
func (s *session) withFlags(
	ctx context.Context, app *cli.App, cmd *cli.Command, flags []givenFlag, ask func(context.Context, *cli.Context),
) {
	line := []string{app.Name, cmd.Name}
	for _, given := range flags {
		if word, err := given.check(cmd); err == nil && !strings.HasPrefix(word, "--help") {
			line = append(line, word)
		}
	}
	asked := false
	cmd.Action = func(cc *cli.Context) error {
		if s.start(cc) == nil {
			ask(ctx, cc)
			asked = true
		}
		return nil
	}
	if _ = app.RunContext(ctx, line); !asked && len(line) > 2 {
		s.withFlags(ctx, app, cmd, nil, ask)
	}
}

// offerFlags offers those flags of a command that are not there yet, or may be
// repeated. Of two names the long one is offered.
func (c *completions) offerFlags(cmd *cli.Command, given []givenFlag) {
	for _, f := range cmd.Flags {
		_, repeated := f.(*cli.StringSliceFlag)
		there := slices.ContainsFunc(given, func(g givenFlag) bool { return slices.Contains(f.Names(), g.name) })
		if !there || repeated {
			what, _, _ := strings.Cut(flagEffect(f.(cli.DocGenerationFlag)), ";")
			c.offer("--"+f.Names()[0], what)
		}
	}
}
