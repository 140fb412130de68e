package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
)

// What is answered to a habit is a command line that is right, and no habit is the
// name of something that is there.
func TestHabits(t *testing.T) {
	app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
	commands := regexp.MustCompile(`carton-oci ((?:[a-z]+)(?: (?:-[a-z-]*|[A-Z]+2?|m\.oci\.tar))*)`)
	for habit, advice := range otherCommands {
		if app.Command(habit) != nil {
			t.Errorf("%s is a command", habit)
		}
		found := commands.FindAllStringSubmatch(advice, -1)
		if len(found) == 0 {
			t.Errorf("%s: %q names no command", habit, advice)
		}
		for _, line := range found {
			if _, err := reorder(app, strings.Fields(line[1])); err != nil {
				t.Errorf("%s: %s: %v", habit, line[0], err)
			}
		}
	}
	flags := map[string]bool{"help": true, "all": true}
	for _, cmd := range app.Commands {
		for _, f := range cmd.Flags {
			for _, name := range f.Names() {
				flags[name] = true
			}
		}
	}
	for habit, advice := range otherFlags {
		for _, word := range regexp.MustCompile(`--[a-z-]+`).FindAllString(advice, -1) {
			if !flags[strings.TrimPrefix(word, "--")] {
				t.Errorf("--%s: there is no %s", habit, word)
			}
		}
		for _, line := range commands.FindAllStringSubmatch(advice, -1) {
			if _, err := reorder(app, strings.Fields(line[1])); err != nil {
				t.Errorf("--%s: %s: %v", habit, line[0], err)
			}
		}
	}
}
