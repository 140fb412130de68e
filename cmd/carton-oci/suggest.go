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
	// Where it goes.
	"upload":   "carton-oci push SOURCE REF",
	"download": "carton-oci pull REF",
	"fetch":    "carton-oci pull REF",
	"get":      "carton-oci pull REF, or carton-oci cat SOURCE PATH for one member",
	"unpack":   "carton-oci pull SOURCE --unpack DIR",
	"extract":  "carton-oci pull SOURCE --unpack DIR",
	"export":   "carton-oci pull REF --unpack DIR, or carton-oci pull REF -o - for a stream",
	"copy":     "carton-oci cp REF REF2",
	"sync":     "carton-oci cp -r REF REF2",
	"mirror":   "carton-oci cp -r REF REF2",
	"save":     "carton-oci cp REF m.oci.tar keeps an artifact in a tar",
	"backup":   "carton-oci cp -r REF m.oci.tar keeps an artifact in a tar, with its image form and signatures",
	"load":     "carton-oci cp m.oci.tar REF",
	"import":   "carton-oci cp m.oci.tar REF",
	"restore":  "carton-oci cp -r m.oci.tar REF",
	// What is there.
	"list": "carton-oci tags REPOSITORY lists tags, carton-oci ls SOURCE the members of a carton",
	"images": "carton-oci tags REPOSITORY lists the tags of a repository; carton-oci ls SOURCE the members of a " +
		"carton",
	"list-tags": "carton-oci tags REPOSITORY",
	"repo":      "carton-oci tags REPOSITORY",
	"search": "what repositories a registry has, its own page tells; carton-oci tags REPOSITORY lists the tags " +
		"of one",
	"catalog": "what repositories a registry has, its own page tells; carton-oci tags REPOSITORY lists the tags " +
		"of one",
	"info":     "carton-oci inspect SOURCE",
	"show":     "carton-oci inspect SOURCE",
	"config":   "carton-oci inspect SOURCE",
	"history":  "carton-oci manifest REF prints the layers",
	"blob":     "carton-oci cat SOURCE PATH prints one member",
	"digest":   "carton-oci resolve REF",
	"discover": "carton-oci referrers REF",
	"tree":     "carton-oci referrers REF",
	"compare":  "carton-oci diff A B",
	"check":    "carton-oci verify SOURCE",
	"validate": "carton-oci verify SOURCE",
	// What becomes of it.
	"build":   "carton-oci pack DIR makes a carton",
	"create":  "carton-oci pack DIR makes a carton",
	"convert": "carton-oci pack DIR makes a carton",
	"retag":   "carton-oci tag REF TAG",
	"rename":  "carton-oci tag REF TAG, and then carton-oci rm REF, which leaves what has another tag",
	"delete":  "carton-oci rm REF",
	"remove":  "carton-oci rm REF",
	"rmi":     "carton-oci rm REF",
	"untag":   "carton-oci rm REF",
	"run":     "nothing here runs a model; carton-oci pull REF --unpack DIR gives its files to what does",
	"serve":   "nothing here runs a model; carton-oci pull REF --unpack DIR gives its files to what does",
	"auth":    "carton-oci login REGISTRY",
	"whoami":  "carton-oci login REGISTRY",
}

// otherFlags are flags of the same programs. They are for commands that have no
// flag of that name themselves.
var otherFlags = map[string]string{
	"p":               "--password-stdin reads the password from standard input: on a command line others can see it",
	"password":        "--password-stdin reads the password from standard input: on a command line others can see it",
	"token":           "--password-stdin reads a token from standard input: on a command line others can see it",
	"user":            "--username NAME",
	"t":               "the tag belongs to REF: host/repository:TAG",
	"tag":             "the tag belongs to REF: host/repository:TAG",
	"revision":        "the revision belongs to the source: hf:ORG/NAME@REVISION",
	"oci-layout":      "an image layout is a word of its own: oci:DIR:TAG",
	"from-oci-layout": "an image layout is a word of its own: oci:DIR:TAG",
	"to-oci-layout":   "an image layout is a word of its own: oci:DIR:TAG",
	"raw":             "carton-oci manifest prints the manifest as it is",
	"artifact-type":   "--type TYPE",
	"json":            "--format json",
	"v":               "--debug",
	"verbose":         "--debug",
	"f":               "--force",
	"overwrite":       "--force",
	"allow-overwrite": "--force",
	"d":               "--unpack DIR writes a folder; --debug logs requests",
	"local-dir":       "--unpack DIR writes a folder",
	"http":            "--plain-http",
	"k":               "--insecure accepts any certificate",
	"tls-verify":      "--insecure accepts any certificate, --plain-http is without TLS",
	"authfile":        "--registry-config FILE",
	"parallel":        "--concurrency N",
	"jobs":            "--concurrency N",
	"j":               "--concurrency N",
	"retry":           "--retries N",
	"timeout":         "--stall-timeout DURATION ends what moves nothing; what moves has all the time it needs",
	"all":             "--help --all shows every flag",
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
		if isFlag && flag != "all" && lookupFlag(known, flag) == nil { // --all goes with --help
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
