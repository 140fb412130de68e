package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// What people type out of habit, of other programs, is answered with what it is
// called here. Nothing is called twice.

// otherCommands are commands of docker, oras, crane, skopeo, git lfs and the
// hub's tools.
var otherCommands = map[string]string{
	"list":     "carton-oci ls SOURCE lists the members of a carton",
	"images":   "carton-oci ls SOURCE lists the members of a carton; what a registry holds, its own tools list",
	"tags":     "which tags there are, a registry's own tools list; carton-oci resolve REF looks one up",
	"copy":     "carton-oci push SOURCE REF copies, also from a registry",
	"cp":       "carton-oci push SOURCE REF copies, also from a registry; carton-oci cat SOURCE PATH prints one member",
	"tag":      "carton-oci push REF REF2 gives an artifact another tag, and sends nothing twice",
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
	"manifest": "carton-oci cat SOURCE MANIFEST prints a carton's; oras manifest fetch REF an image's",
	"digest":   "carton-oci resolve REF",
	"check":    "carton-oci verify SOURCE",
	"validate": "carton-oci verify SOURCE",
	"rm":       "carton-oci deletes nothing; a registry's own tools do",
	"delete":   "carton-oci deletes nothing; a registry's own tools do",
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

// adviseFlag says what a flag that is not known is called here, "" where nobody
// knows. It names only flags that the command has.
func adviseFlag(cmd *cli.Command, known []cli.Flag, name string) string {
	if advice, ok := otherFlags[name]; ok {
		for _, word := range strings.Fields(advice) {
			if flag, isLong := strings.CutPrefix(strings.Trim(word, ":;,"), "--"); isLong && lookupFlag(known, flag) == nil {
				return ""
			}
		}
		if strings.HasPrefix(advice, "the tag") && !strings.Contains(cmd.ArgsUsage, "REF") {
			return ""
		}
		return advice
	}
	if len(name) == 2 || len(name) == 3 {
		for _, letter := range name {
			if lookupFlag(known, string(letter)) != nil {
				return "letters are not joined: every flag stands by itself, as -" + string(letter) + " does"
			}
		}
	}
	return ""
}
