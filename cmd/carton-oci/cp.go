package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"
)

func (s *session) cpCommand() *cli.Command {
	var o client.CopyOptions
	var w trustWords
	return &cli.Command{
		Name:      "cp",
		Usage:     "copy an artifact, with its digest, from anywhere to anywhere",
		ArgsUsage: "REF REF2[,TAG...]",
		UsageText: `carton-oci cp ghcr.io/org/m:1 registry.example/org/m:1
carton-oci cp -r ghcr.io/org/m:1 m.oci.tar
carton-oci cp -r m.oci.tar registry.example/org/m`,
		Description: `The copy has the digest of REF. Without a tag REF2 gets that of REF. What is
there already is not sent, within one registry blobs are mounted, and a copy
that was interrupted goes on when it is run again. The last line printed is the
digest; with -q it is the only one.

With -r the image form goes along, and referrers and signatures of either, and
what refers to those: what arrives verifies. m.oci.tar is an archive, a tar of
an image layout, which skopeo and podman call oci-archive. It is written whole.

Anything can be copied. What is a carton is checked as by push.`,
		Flags: s.flags(slices.Concat([]cli.Flag{
			yes(&o.Recursive, "recursive", "copy the image form, referrers and signatures too", "r"),
		}, sendFlags(&o.NoClobber, &o.DryRun), []cli.Flag{
			forceFlag(&o.Force), modelHash(&o.ModelHash),
		}), inCategory(forReaders,
			text(&o.ImageTag, "image-tag", "with -r, the image form is tagged `TAG`, not REF-image"),
			yes(&o.LeaveImage, "no-image", "leave a REF2-image that is there as it is"),
		), inCategory(forForm,
			yes(&o.AllowInvalid, "allow-invalid", "copy although carton.toml, or what it refers to, is wrong"),
		), trustFlags(&w), s.registryFlags(s.concurrencyFlag(), s.chunkSizeFlag())),
		Action: s.command(func(c *cli.Context) error { return s.runCopy(c, o, w) }),
	}
}

func (s *session) runCopy(c *cli.Context, o client.CopyOptions, w trustWords) error {
	trust, err := w.trust(c)
	if err := cmp.Or(onlyWith(c, "recursive", "image-tag"), err); err != nil {
		return err
	}
	o.Trust, o.Signature = trust, w.file
	if err := s.logInForCopy(c); err != nil {
		return err
	}
	if !o.DryRun {
		s.showProgress("copy")
	}
	o.Concurrency, o.Progress = s.concurrency, s.progress
	o.Planned = func(r *client.PushResult) {
		for _, w := range r.Warnings {
			s.warnf("%s", w)
		}
	}
	result, err := s.client.Copy(c.Context, c.Args().Get(0), c.Args().Get(1), o)
	s.stopProgress()
	if err != nil {
		return hintToGoOn(err)
	}
	s.result(result, []string{result.Digest.String()}, func() { s.printPush(result) })
	return nil
}

// logInForCopy logs in where a copy goes, or else where it comes from. What names
// nothing is left to Copy to say.
func (s *session) logInForCopy(c *cli.Context) error {
	from, _ := location.Parse(c.Args().Get(0))
	to, _, _ := location.ParseCopyDestination(c.Args().Get(1))
	if to.Kind != location.KindRegistry {
		to = from
	}
	return s.logInAs(c, to)
}

// withSummary says what went along with a copy.
func withSummary(with []client.CopiedWith) string {
	var parts []string
	for _, kind := range []struct{ one, more string }{
		{"entry", "entries"}, {"image", "images"}, {"referrer", "referrers"}, {"signature", "signatures"},
	} {
		n := 0
		for _, w := range with {
			if w.Kind == kind.one {
				n++
			}
		}
		switch n {
		case 0:
		case 1:
			parts = append(parts, "1 "+kind.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.more))
		}
	}
	return strings.Join(parts, ", ")
}
