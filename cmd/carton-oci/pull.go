package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

func pullCommand(out *printer) *cli.Command {
	return &cli.Command{
		Name:      "pull",
		Usage:     "make a carton, or a folder, of what is in a registry",
		ArgsUsage: "REF",
		UsageText: `carton-oci pull ghcr.io/org/m:1
carton-oci pull ghcr.io/org/m:1 --unpack ./m
carton-oci pull ghcr.io/org/m:1 --unpack ./m --folder model`,
		Description: `The output has its name only when every byte was checked against the model hash.
Run again, it checks what is there. With --force or --from only members that are
not on this machine already are downloaded; what is copied is hashed on the way.
A REF without a tag is :latest. It may be any SOURCE: "pull thin.carton -o
full.carton" fetches what a thin carton lacks.`,
		Flags: flags([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write `FILE` (m-TAG.carton)"},
			&cli.StringFlag{Name: "unpack", Usage: "write the folder `DIR` instead"},
			&cli.StringFlag{Name: "folder", Usage: "with --unpack: only what is below `NAME`, such as model"},
			&cli.StringSliceFlag{Name: "include", Usage: "with --unpack: only members that match `GLOB`; may be repeated"},
			&cli.StringSliceFlag{Name: "exclude", Usage: "with --unpack: no members that match `GLOB`; may be repeated"},
			&cli.BoolFlag{Name: "thin", Usage: "leave weights in the registry; LINKS says where"},
			&cli.StringFlag{Name: "link-base", Usage: "with --thin: links are `URL`/HASH"},
			&cli.StringFlag{Name: "model-hash", Usage: "refuse every model but `HEX`"},
			&cli.BoolFlag{Name: "force", Usage: "replace the file, or the folder if a pull has made all of it; what has not changed is copied from it"},
			&cli.StringSliceFlag{Name: "from", Usage: "copy from `SOURCE`, a carton or folder here, what it has of the model; may be repeated"},
			&cli.StringFlag{Name: "runner", Usage: "make a carton of a plain model, for the runner `NAME`"},
			&cli.StringFlag{Name: "framework-version", Usage: "with --runner: which versions of its framework, `REQ`"},
			&cli.Uint64Flag{Name: "runner-compat", Usage: "with --runner: model/ is laid out as version `N` of the runner's layout"},
			&cli.StringSliceFlag{Name: "opt", Usage: "with --runner: set the runner's option `KEY=VALUE`; may be repeated"},
		}, sourceFlags()),
		Action: command(out, runPull),
	}
}

func runPull(c *cli.Context, s *session) error {
	if err := wantArgs(c, "REF"); err != nil {
		return err
	}
	opts, err := pullOptions(c)
	if err != nil {
		return err
	}
	ref := c.Args().Get(0)
	loc, err := location.Parse(ref)
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	if err := s.logInAs(c, loc); err != nil {
		return err
	}
	s.showProgress("pull")
	opts.Concurrency, opts.Progress = s.concurrency, s.progress
	result, err := s.client.Pull(c.Context, ref, opts)
	s.stopProgress()
	if err != nil {
		return err
	}
	s.adviseAfterPull(result, opts, loc)
	s.printPull(result)
	return nil
}

func pullOptions(c *cli.Context) (client.PullOptions, error) {
	o := client.PullOptions{
		Output: c.String("output"), Unpack: c.String("unpack"), Folder: c.String("folder"),
		Include: c.StringSlice("include"), Exclude: c.StringSlice("exclude"),
		Thin: c.Bool("thin"), LinkBase: c.String("link-base"),
		ModelHash: c.String("model-hash"), Force: c.Bool("force"), From: c.StringSlice("from"),
	}
	for _, err := range []error{
		notBoth(c, "unpack", "output", "thin"),
		onlyWith(c, "unpack", "folder", "include", "exclude"),
		onlyWith(c, "thin", "link-base"),
		onlyWith(c, "runner", "framework-version", "runner-compat", "opt"),
		notStandardOutput(c, "output", "unpack"),
	} {
		if err != nil {
			return o, err
		}
	}
	if c.IsSet("model-hash") && !sha256hex.Is(o.ModelHash) {
		return o, usagef("pull", "--model-hash: got %s, want "+sha256hex.Want, quoted(o.ModelHash))
	}
	if !c.IsSet("runner") {
		return o, nil
	}
	var err error
	o.Wrap, err = wrapOf(c)
	return o, err
}

// wrapOf reads the flags that say what is made of a plain model, as in pack.
func wrapOf(c *cli.Context) (*carton.Runner, error) {
	p, err := packOptions(c)
	if err != nil {
		return nil, err
	}
	if p.Runner.RequiredFrameworkVersion == "" {
		p.Runner.RequiredFrameworkVersion = pack.FrameworkOf(p.Runner.Name)
	}
	if missing := pack.Missing(p.Runner); missing != nil {
		return nil, missingFlags("pull", "no artifact says it", missing)
	}
	return &p.Runner, nil
}

func (s *session) printPull(r *client.PullResult) {
	switch {
	case s.json:
		s.object(r)
		return
	case s.quiet:
		s.linef("%s", r.Path)
		return
	}
	received := fmt.Sprintf("%s in %.1f s", errtext.Size(r.BytesDownloaded), r.Seconds)
	if r.BytesReused > 0 {
		received += fmt.Sprintf(", %s reused", errtext.Size(r.BytesReused))
	}
	path := r.Path
	if r.AlreadyHere {
		received, path = "", "already here: "+r.Path
	}
	s.fields(
		[2]string{"reference", r.Reference},
		[2]string{"digest", r.Digest.String()},
		[2]string{"model hash", r.ModelHash},
		[2]string{"received", received},
		[2]string{"path", path},
	)
}

// adviseAfterPull says what is not as one might expect.
func (s *session) adviseAfterPull(r *client.PullResult, opts client.PullOptions, from location.Location) {
	if r.Regenerated {
		s.warnf("the artifact holds no MANIFEST: the model hash is that of one made from its content, not its author's")
	}
	for _, why := range r.NotReused {
		s.warnf("not reused, so read from %s: %s", r.Reference, why)
	}
	s.warnOfLayers(r.Unlisted)
	if r.LinksNeedToken {
		s.warnf("the registry wants a token for what LINKS names; loaders of cartons send none")
		s.hintf("make the repository public, or name a server that needs no token with --link-base")
	}
	if opts.Unpack == "" && !r.AlreadyHere && !r.Regenerated && from.Kind != location.KindPath {
		s.notef("the zip is laid out anew; the model hash is the same")
	}
}
