package main

import (
	"slices"

	"github.com/urfave/cli/v2"
)

// newApp returns the command line: which commands there are and what all of
// them have in common.
func newApp(s *session) *cli.App {
	cli.HelpFlag = &cli.BoolFlag{
		Name: "help", Aliases: []string{"h"}, Usage: "show help; --help --all shows every flag",
		DisableDefaultText: true, Category: forScripts,
	}
	cli.VersionPrinter = func(c *cli.Context) { s.printVersion() }
	app := &cli.App{
		Name:    programName,
		Usage:   "push and pull cartons, one-file models, to and from any OCI registry",
		Version: moduleVersion(),
		Description: `SOURCE and REF are any of
  m.carton, ./folder                 a carton, as a zip or unpacked
  host/repo:tag, host/repo@sha256:…  in a registry; oci://host/… is the same
  oci:DIR:TAG, oci:DIR@sha256:…      an artifact in an image layout
  m.oci.tar:TAG, oci-archive:FILE    an artifact in a tar of one
  https://host/m.carton              a carton on a web server
  hf:ORG/NAME, hf:ORG/NAME@REV       a repository of the Hugging Face hub, to
                                     make a carton of

Environment: DOCKER_CONFIG, REGISTRY_AUTH_FILE (credentials), HTTPS_PROXY,
NO_PROXY, SSL_CERT_FILE, SOURCE_DATE_EPOCH, CARTON_OCI_CACHE (a folder that
remembers uploads under way; empty for none), CARTON_OCI_MEDIA_TYPES (the family
of media types that push writes: cnai, cncf or cnai-draft), CARTON_OCI_POLICY (a
file that says whose signatures are wanted), COSIGN_PASSWORD (of private keys),
NO_COLOR, CLICOLOR.

Exit codes: 0 done, 1 failed, 2 wrong usage, or a local file that is not there,
3 content does not match its hash or breaks the format, 4 no such tag, artifact
or member, 5 not allowed, or not signed by whom was asked for, 130 interrupted.`,
		UsageText: "carton-oci COMMAND [flags] [arguments]",
		Metadata:  map[string]any{},
		Commands: slices.Concat(
			inGroup("to and from registries", s.pushCommand(), s.pullCommand(), s.cpCommand(), s.imageCommand(),
				s.resolveCommand()),
			inGroup("what is in registries", s.tagCommand(), s.tagsCommand(), s.rmCommand(), s.manifestCommand(),
				s.referrersCommand(), s.attachCommand()),
			inGroup("what is in it", s.inspectCommand(), s.lsCommand(), s.catCommand(), s.tensorsCommand(),
				s.diffCommand()),
			inGroup("made and checked here", s.packCommand(), s.verifyCommand()),
			inGroup("signatures", s.signCommand(), s.keygenCommand(), s.sbomCommand()),
			inGroup("about this program", s.loginCommand(), s.logoutCommand(), s.completionCommand(),
				s.versionCommand()),
		),
		Writer:    s.out,
		ErrWriter: s.err,
		// A comma is a character like any other in a value.
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true, // reorder knows it
		OnUsageError:              onUsageError,
		// Errors are printed once, by run.
		ExitErrHandler: func(*cli.Context, error) {},
	}
	for _, cmd := range app.Commands {
		cmd.OnUsageError = onUsageError
		cmd.HideHelpCommand = true // else "ls help" is no path
	}
	cli.HelpPrinter = helpPrinter(func() bool { return app.Metadata[allFlags] != nil })
	return app
}

const programName = "carton-oci"

// inGroup puts commands under one head of the program's help.
func inGroup(head string, commands ...*cli.Command) []*cli.Command {
	for _, cmd := range commands {
		cmd.Category = head
	}
	return commands
}

// onUsageError turns what cli has to say about a value into our error: cli
// would print it to standard output.
func onUsageError(c *cli.Context, err error, _ bool) error {
	return usagef(c.Command.Name, "%v", err)
}
