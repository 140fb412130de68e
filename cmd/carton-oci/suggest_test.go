package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/hint"
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

// What people type first, and what they are told.
func TestListedHabits(t *testing.T) {
	for line, want := range map[string]string{
		"list m.carton":               "carton-oci tags REPOSITORY lists tags, carton-oci ls SOURCE the members of a carton",
		"images":                      "carton-oci tags REPOSITORY lists the tags of a repository; carton-oci ls SOURCE the members of a carton",
		"copy h.io/m:1 h.io/m:2":      "carton-oci cp REF REF2",
		"rmi h.io/m:1":                "carton-oci rm REF",
		"delete h.io/m:1":             "carton-oci rm REF",
		"retag h.io/m:1 2":            "carton-oci tag REF TAG",
		"save h.io/m:1":               "carton-oci cp REF m.oci.tar keeps an artifact in a tar",
		"login -p secret h.io":        "--password-stdin reads the password from standard input: on a command line others can see it",
		"inspect --raw h.io/m:1":      "carton-oci manifest prints the manifest as it is",
		"pull --local-dir d h.io/m:1": "--unpack DIR writes a folder",
		"pull -dq h.io/m:1":           "letters are not joined: every flag stands by itself, as -q does",
		"pull h.io/m:1 --output f":    "",
		"push m.carton -t h.io/m:1":   "the tag belongs to REF: host/repository:TAG",
		"push --all m h.io/m:1":       "--help --all shows every flag",
		"pusg m h.io/m:1":             "did you mean push?",
		"pull h.io/m:1 --froce":       "did you mean --force?",
	} {
		app := newApp(&session{printer: &printer{out: io.Discard, err: io.Discard}})
		_, err := reorder(app, strings.Fields(line))
		var got []string
		for _, h := range hint.Of(err) {
			got = append(got, h.Text(commandNames))
		}
		if strings.Join(got, "; ") != want || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%s: got %v and the hint %q, want %q", line, err, got, want)
		}
	}
}
