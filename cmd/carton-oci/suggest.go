package main

import (
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// What is typed wrong is answered with what may have been meant, and what people
// type out of habit, of other programs, with what it is called here. Nothing is
// called twice.

// otherCommands are commands of docker, oras, crane, skopeo, git lfs and the
// hub's tools.
var otherCommands = map[string]string{
	"list":     "carton-oci ls SOURCE lists the members of a carton",
	"images":   "carton-oci tags REPOSITORY lists the tags of a repository; ls SOURCE the members of a carton",
	"copy":     "carton-oci cp REF REF2",
	"sync":     "carton-oci cp -r REF REF2",
	"upload":   "carton-oci push SOURCE REF",
	"download": "carton-oci pull REF",
	"fetch":    "carton-oci pull REF",
	"get":      "carton-oci pull REF, or carton-oci cat SOURCE PATH for one member",
	"unpack":   "carton-oci pull SOURCE --unpack DIR",
	"extract":  "carton-oci pull SOURCE --unpack DIR",
	"build":    "carton-oci pack DIR makes a carton",
	"create":   "carton-oci pack DIR makes a carton",
	"info":     "carton-oci inspect SOURCE",
	"show":     "carton-oci inspect SOURCE",
	"digest":   "carton-oci resolve REF",
	"check":    "carton-oci verify SOURCE",
	"validate": "carton-oci verify SOURCE",
	"delete":   "carton-oci rm REF",
	"remove":   "carton-oci rm REF",
	"rmi":      "carton-oci rm REF",
	"untag":    "carton-oci rm REF",
	"discover": "carton-oci referrers REF",
}

// otherFlags are flags of the same programs. They are for commands that have no
// flag of that name themselves.
var otherFlags = map[string]string{
	"p":               "--password-stdin reads the password from standard input: on a command line others can see it",
	"password":        "--password-stdin reads the password from standard input: on a command line others can see it",
	"user":            "--username NAME",
	"t":               "the tag belongs to REF: host/repository:TAG",
	"tag":             "the tag belongs to REF: host/repository:TAG",
	"json":            "--format json",
	"v":               "--debug",
	"verbose":         "--debug",
	"f":               "--force",
	"overwrite":       "--force",
	"d":               "--unpack DIR writes a folder; --debug logs requests",
	"output-dir":      "--unpack DIR writes a folder",
	"allow-overwrite": "--force",
	"http":            "--plain-http",
	"tls-verify":      "--insecure accepts any certificate, --plain-http is without TLS",
	"authfile":        "--registry-config FILE",
	"parallel":        "--concurrency N",
	"retry":           "--retries N",
}

func unknownCommand(app *cli.App, name string) error {
	err := usagef("", "unknown command %s", secret.Redact(name))
	if advice, ok := otherCommands[name]; ok {
		return withHint(err, "%s", hint.Text(advice))
	}
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	if like := nearest(name, names); like != "" {
		return withHint(err, "did you mean %s?", like)
	}
	return withHint(err, "%s --help lists the commands", app.Name)
}

func unknownFlag(cmd *cli.Command, name string) error {
	err := usagef(cmd.Name, "unknown flag %s", dashed(secret.Redact(name)))
	known := append([]cli.Flag{cli.HelpFlag}, cmd.Flags...)
	if advice := otherFlags[name]; advice != "" && fits(advice, cmd, known) {
		return withHint(err, "%s", hint.Text(advice))
	}
	if len(name) == 2 || len(name) == 3 {
		for _, letter := range name {
			if lookupFlag(known, string(letter)) != nil {
				return withHint(err, "letters are not joined: every flag stands by itself, as -%c does", letter)
			}
		}
	}
	var names []string
	for _, f := range known {
		names = append(names, f.Names()...)
	}
	if like := nearest(name, names); like != "" {
		return withHint(err, "did you mean %s?", dashed(like))
	}
	return err
}

// fits reports whether a command has what the advice about a flag speaks of: the
// flags that it names, and a REF.
func fits(advice string, cmd *cli.Command, known []cli.Flag) bool {
	for _, word := range strings.Fields(advice) {
		flag, isFlag := strings.CutPrefix(strings.Trim(word, ":;,"), "--")
		if isFlag && lookupFlag(known, flag) == nil {
			return false
		}
	}
	return !strings.Contains(advice, "REF") || strings.Contains(cmd.ArgsUsage, "REF")
}

// nearest returns the name that word is most likely a misspelling of, "" where
// nothing is near.
func nearest(word string, names []string) string {
	best, most := "", 0.8 // of 1, which is the same word
	for _, name := range names {
		if like := smetrics.JaroWinkler(word, name, 0.7, 4); like > most {
			best, most = name, like
		}
	}
	return best
}
