package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

func (s *session) pullCommand() *cli.Command {
	var o client.PullOptions
	var p pack.Options
	var w trustWords
	return &cli.Command{
		Name:      "pull",
		Usage:     "make a carton, or a folder, of what is in a registry",
		ArgsUsage: "REF",
		UsageText: `carton-oci pull ghcr.io/org/m:1
carton-oci pull ghcr.io/org/m:1 --unpack ./m
carton-oci pull ghcr.io/org/m:1 --unpack ./m --folder model
carton-oci pull ghcr.io/org/m:1 -o - | ssh host 'cat >m.carton'`,
		Description: `The output has its name only when every byte was checked against the model hash.
Run again, it checks what is there. With --force or --from only members that are
not on this machine already are downloaded; what is copied is hashed on the way.
A REF without a tag is :latest. It may be any SOURCE: "pull thin.carton -o
full.carton" fetches what a thin carton lacks. With --key the model's signature
lies beside the output: m.carton.sig.

With -o - the same bytes go to standard output as they come. What an exit code
other than 0 leaves there is not to be used: it lacks its end, so that no reader
takes it for a carton. A member over 16 MiB is downloaded twice, because a zip
has a checksum before it; "cat" streams one member, and reads it once.`,
		Flags: s.flags([]cli.Flag{
			text(&o.Output, "output", "write `FILE` (m-TAG.carton); - is standard output", "o"),
			text(&o.OutputDir, "output-dir", "write m-TAG.carton into the folder `DIR`"),
			outputFolder(&o.Unpack, "unpack", "write the folder `DIR` instead"),
			list(&o.Include, "include", "with --unpack: only members that match `GLOB`"),
			list(&o.From, "from", "copy from `SOURCE`, a carton or folder here, what it has of the model"),
			yes(&o.Force, "force",
				"replace the file, or the folder if a pull has made all of it; what has not changed is copied from it"),
			modelHash(&o.ModelHash),
		}, inCategory(forPart,
			list(&o.Exclude, "exclude", "with --unpack: no members that match `GLOB`"),
			text(&o.Folder, "folder", "with --unpack: only what is below `NAME`, such as model"),
		), inCategory(forPlain, runnerFlags(&p, "make a carton of a plain model, for the runner `NAME`",
			"with --runner: ")...),
			inCategory(forThin,
				yes(&o.Thin, "thin", "leave weights in the registry; LINKS says where"),
				text(&o.LinkBase, "link-base", "with --thin: links are `URL`/HASH"),
			), trustFlags(&w), s.sourceFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runPull(c, o, p, w) }),
	}
}

func (s *session) runPull(c *cli.Context, opts client.PullOptions, p pack.Options, w trustWords) (err error) {
	for _, err := range []error{
		notBoth(c, "unpack", "output", "thin"),
		notBoth(c, "output-dir", "output", "unpack"),
		onlyWith(c, "unpack", "folder", "include", "exclude"),
		onlyWith(c, "thin", "link-base"),
		onlyWith(c, "runner", "framework-version", "runner-compat", "opt"),
	} {
		if err != nil {
			return err
		}
	}
	if p.Runner.Name != "" {
		var err error
		if opts.Wrap, err = wrapOf(p); err != nil {
			return err
		}
	}
	if opts.Trust, err = w.trust(c); err != nil {
		return err
	}
	opts.Signature = w.file
	ref := c.Args().Get(0)
	if _, err := s.locate(c, ref); err != nil {
		return err
	}
	if opts.Output == stream {
		if err := s.mayStream(c, "force", "from"); err != nil {
			return err
		}
		opts.Output, opts.Stream = "", s.out
	}
	s.showProgress("pull")
	opts.Concurrency, opts.Progress = s.concurrency, s.progress
	result, err := s.client.Pull(c.Context, ref, opts)
	s.stopProgress()
	if err != nil {
		return err
	}
	s.noteAfterPull(result)
	if opts.Stream != nil {
		s.notef("streamed %s, model hash %s", result.Reference, result.ModelHash)
		return nil
	}
	s.printPull(result)
	return nil
}

// mayStream refuses what does not go with a carton on standard output.
func (s *session) mayStream(c *cli.Context, flags ...string) error {
	for _, name := range flags {
		if c.IsSet(name) {
			return usagef(c.Command.Name, "--%s is about files, and -o - writes none", name)
		}
	}
	if s.json {
		return usagef(c.Command.Name, "--format json prints to standard output, where -o - writes the carton")
	}
	if columns, _ := terminalSize(s.out); columns > 0 {
		return withHint(usagef(c.Command.Name, "a carton is not for a terminal"),
			"name a file: -o FILE.carton, or send it on: -o - | COMMAND")
	}
	return nil
}

// wrapOf says what is made of a plain model, as in pack.
func wrapOf(p pack.Options) (*carton.Runner, error) {
	if p.Runner.RequiredFrameworkVersion == "" {
		p.Runner.RequiredFrameworkVersion = pack.FrameworkOf(p.Runner.Name)
	}
	if missing := pack.Missing(p.Runner); missing != nil {
		return nil, missingFlags("pull", "the artifact doesn't say all that carton.toml needs", missing)
	}
	return &p.Runner, nil
}

func (s *session) printPull(r *client.PullResult) {
	received := fmt.Sprintf("%s in %.1f s", errtext.Size(r.BytesDownloaded), r.Seconds)
	if r.BytesReused > 0 {
		received += fmt.Sprintf(", %s reused", errtext.Size(r.BytesReused))
	}
	path := r.Path
	if r.AlreadyHere {
		received, path = "", "already here: "+r.Path
	}
	s.result(r, []string{r.Path}, func() {
		s.fields(
			[2]string{"reference", r.Reference},
			[2]string{"digest", r.Digest.String()},
			[2]string{"model hash", r.ModelHash},
			[2]string{"received", received},
			[2]string{"signature", r.Signature},
			[2]string{"path", path},
		)
	})
}

// noteAfterPull says what is not as one might expect.
func (s *session) noteAfterPull(r *client.PullResult) {
	if r.Regenerated {
		s.warnf("the artifact holds no MANIFEST: the model hash is that of one made from its content, not its author's")
	}
	for _, why := range r.NotReused {
		s.warnf("not reused, so read from %s: %s", r.Reference, why)
	}
	s.warnOfLayers(r.Unlisted)
	if r.SignatureInTheWay != "" {
		s.warnf("%s stays as it is: it is not the signature that was verified", r.SignatureInTheWay)
	}
	if r.LinksNeedToken {
		s.warnf("the registry wants a token for what LINKS names; loaders of cartons send none")
		s.hintf("make the repository public, or name a server that needs no token with --link-base")
	}
}
