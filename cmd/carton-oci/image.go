package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

func imageCommand(out *printer) *cli.Command {
	return &cli.Command{
		Name:      "image",
		Usage:     "make the form of an artifact that containerd mounts",
		ArgsUsage: "REF",
		UsageText: "carton-oci image ghcr.io/org/m:1",
		Description: `REF-image is an OCI image that unpacks to the carton REF: what push --image
adds. Where REF has tar layers (push --layers tar) they are shared: they come
from the registry once, to be checked against MANIFEST, and nothing goes back
but manifests. Else every file comes once and goes back in a tar layer. Either
way it goes through memory, never to disk. The last line printed is the image's
digest; with -q it is the only one.`,
		Flags: flags([]cli.Flag{
			&cli.StringFlag{Name: "image-tag", Usage: "tag the image form with `NAME`"},
			&cli.BoolFlag{Name: "image-subject", Usage: "make the image form refer to the artifact, which then lists it"},
			&cli.BoolFlag{Name: "no-clobber", Usage: "refuse to move a tag that points to something else"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be sent, and send nothing"},
		}, registryFlags(concurrencyFlag(), chunkSizeFlag())),
		Action: command(out, runImage),
	}
}

func runImage(c *cli.Context, s *session) error {
	if err := wantArgs(c, "REF"); err != nil {
		return err
	}
	ref := c.Args().Get(0)
	loc, err := location.Parse(ref)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := s.logInAs(c, loc); err != nil {
		return err
	}
	if !c.Bool("dry-run") {
		s.showProgress("image")
	}
	result, err := s.client.Image(c.Context, ref, client.ImageOptions{
		Concurrency: s.concurrency, Progress: s.progress, Tag: c.String("image-tag"), Subject: c.Bool("image-subject"),
		NoClobber: c.Bool("no-clobber"), DryRun: c.Bool("dry-run"),
	})
	s.stopProgress()
	if err != nil {
		return adviseToGoOn(err)
	}
	s.printImage(result)
	return nil
}

func (s *session) printImage(r *client.ImageResult) {
	switch {
	case s.json:
		s.object(r)
		return
	case s.quiet && r.Digest == "": // of a dry run
		return
	case s.quiet:
		s.linef("%s", r.Digest)
		return
	}
	if !r.DryRun {
		s.printVolume(r.Reference, r.Digest)
	}
	dgst := r.Digest.String()
	if dgst == "" {
		dgst = "not known before the layers were read"
	}
	s.fields(
		[2]string{"image", r.Reference},
		[2]string{"", forImages},
		[2]string{"artifact", r.Artifact.Reference},
		[2]string{"layers", imageSummary(r)},
		[2]string{"model hash", r.ModelHash},
		[2]string{"digest", dgst},
	)
}

// imageSummary says what the image form is made of.
func imageSummary(r *client.ImageResult) string {
	text := fmt.Sprintf("%d (%s)", r.Layers, errtext.Size(r.Size))
	switch {
	case r.Shared:
		text += ", shared with the artifact"
	case r.DryRun:
		text += ", to be sent"
	default:
		text += fmt.Sprintf(", %s sent", errtext.Size(r.BytesUploaded))
	}
	if !r.DryRun {
		text += fmt.Sprintf(" in %.1f s", r.Seconds)
	}
	return text
}
