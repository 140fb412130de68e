package main

import (
	"bytes"
	"io"
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

// Every help fits into 80 columns, and names every flag of its command once.
func TestHelp(t *testing.T) {
	app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
	for _, cmd := range append(app.Commands, &cli.Command{}) {
		help := helpOf(t, cmd.Name)
		for _, line := range strings.Split(help, "\n") {
			if utf8.RuneCountInString(line) > helpWidth || strings.TrimRight(line, " ") != line {
				t.Errorf("help %s: got a line that is too wide, or ends in a space: %q", cmd.Name, line)
			}
		}
		for _, f := range cmd.Flags {
			names := strings.TrimRight(flagNames(f.(cli.DocGenerationFlag)), " \n")
			if n := strings.Count(strings.ReplaceAll(help, "\n", " \n"), "\n"+names+" "); n != 1 {
				t.Errorf("help %s: %s is there %d times", cmd.Name, f.Names()[0], n)
			}
		}
		for _, example := range strings.Split(cmd.UsageText, "\n") {
			if example == "" {
				continue
			}
			words := strings.Fields(strings.TrimPrefix(strings.NewReplacer("'", "", " <token.txt", "").Replace(example), "carton-oci "))
			if _, err := reorder(app, words); err != nil || words[0] != cmd.Name {
				t.Errorf("help %s: %s: %v", cmd.Name, example, err)
			}
		}
		if _, after, _ := strings.Cut(help, "\nusage: "); cmd.Name != "" && cmd.Name != "version" && !strings.HasPrefix(strings.SplitN(after, "\n", 3)[2], "  carton-oci "+cmd.Name+" ") {
			t.Errorf("help %s: want examples first, got %s", cmd.Name, help)
		}
		if !strings.HasPrefix(help, strings.TrimSpace("carton-oci "+cmd.Name)+": ") || !strings.Contains(help, "\nusage: carton-oci ") {
			t.Errorf("help %s: got %q", cmd.Name, help)
		}
	}
}
