package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// helpOf returns what "carton-oci help NAME" prints.
func helpOf(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	app := newApp(&session{printer: &printer{out: &b, err: io.Discard}})
	words, err := reorder(app, strings.Fields("help "+name))
	if err == nil {
		err = app.Run(append([]string{app.Name}, words...))
	}
	if err != nil {
		t.Fatalf("help %s: %v", name, err)
	}
	return b.String()
}

// Every help fits into 80 columns, begins with examples that are right, and shows
// ten flags at most; with --all, every flag once.
func TestHelp(t *testing.T) {
	app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
	for _, cmd := range append(app.Commands, &cli.Command{}) {
		short, whole := helpOf(t, cmd.Name), helpOf(t, cmd.Name+" --all")
		for _, line := range strings.Split(short+whole, "\n") {
			if utf8.RuneCountInString(line) > helpWidth || strings.TrimRight(line, " ") != line {
				t.Errorf("help %s: got a line that is too wide, or ends in a space: %q", cmd.Name, line)
			}
		}
		if n := len(commandPage(cmd).flags[0].flags); cmd.Name != "" && (n > 10 || n == 0) {
			t.Errorf("help %s: got %d flags, want 1 to 10 of every day", cmd.Name, n)
		}
		for _, f := range cmd.Flags {
			names := strings.TrimRight(flagNames(f.(cli.DocGenerationFlag)), " \n")
			if n := strings.Count(strings.ReplaceAll(whole, "\n", " \n"), "\n"+names+" "); n != 1 {
				t.Errorf("help %s --all: %s is there %d times", cmd.Name, f.Names()[0], n)
			}
			if head := f.(cli.CategorizableFlag).GetCategory(); !slices.Contains(flagHeads, head) {
				t.Errorf("%s --%s: its head %q has no place in the help", cmd.Name, f.Names()[0], head)
			}
		}
		for _, name := range everyDay[cmd.Name] {
			if lookupFlag(cmd.Flags, name) == nil {
				t.Errorf("help %s: there is no --%s", cmd.Name, name)
			}
		}
		if cmd.Name != "" && cmd.Category == "" {
			t.Errorf("%s: is in no group of the program's help", cmd.Name)
		}
		for _, example := range strings.Split(cmd.UsageText, "\n") {
			if example == "" {
				continue
			}
			words := strings.Fields(strings.TrimPrefix(strings.NewReplacer("'", "", " <token.txt", "", " | ssh host cat >m.carton", "").Replace(example), "carton-oci "))
			if _, err := reorder(app, words); err != nil || words[0] != cmd.Name {
				t.Errorf("help %s: %s: %v", cmd.Name, example, err)
			}
		}
		if _, after, _ := strings.Cut(short, "\nusage: "); cmd.Name != "version" && !strings.HasPrefix(strings.SplitN(after, "\n", 3)[2], "  carton-oci "+cmd.Name) {
			t.Errorf("help %s: want examples first, got %s", cmd.Name, short)
		}
		if !strings.HasPrefix(short, strings.TrimSpace("carton-oci "+cmd.Name)+": ") || !strings.Contains(short, "\nusage: carton-oci ") {
			t.Errorf("help %s: got %q", cmd.Name, short)
		}
	}
	for name := range everyDay {
		if app.Command(name) == nil {
			t.Errorf("everyDay has %s, which is no command", name)
		}
	}
}
