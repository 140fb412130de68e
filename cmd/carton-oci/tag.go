package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"
)

func (s *session) tagCommand() *cli.Command {
	var o client.TagOptions
	return &cli.Command{
		Name:      "tag",
		Usage:     "point more tags to what a reference stands for",
		ArgsUsage: "REF TAG...",
		UsageText: `carton-oci tag ghcr.io/org/m:1.4.0 1.4 latest
carton-oci tag ghcr.io/org/m@sha256:4f1c… stable`,
		Description: `In the same repository or image layout: nothing but the manifest is sent, and
the digest stays the same. A tag that points to something else moves, unless
--no-clobber is given. The tags of an image form (REF-image) are tags like
others, and move when they are named.`,
		Flags:  s.flags([]cli.Flag{noClobberFlag(&o.NoClobber)}, s.registryFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runTag(c, o) }),
	}
}

func (s *session) runTag(c *cli.Context, o client.TagOptions) error {
	if c.NArg() < 2 {
		return wantArgs(c, "REF", "TAG...")
	}
	ref, tags := c.Args().Get(0), c.Args().Slice()[1:]
	if _, err := s.locate(c, ref); err != nil {
		return err
	}
	result, err := s.client.Tag(c.Context, ref, tags, o)
	if err != nil {
		return err
	}
	for _, tag := range result.ImagesLeft {
		s.warnf("%s is the image form of another model, and stays where it is", tag)
	}
	s.result(result, []string{result.Digest.String()}, func() {
		s.fields(
			[2]string{"reference", result.Reference},
			[2]string{"tags", strings.Join(result.Tags, ", ")},
			[2]string{"digest", result.Digest.String()},
		)
	})
	if loc, err := location.Parse(result.Reference); err == nil && result.ImageUntagged != "" && !s.json {
		loc.Tag, loc.Digest = result.ImageUntagged, ""
		s.notef("its image form has no such tags: carton-oci tag %s %s-image", loc, strings.Join(tags, "-image "))
	}
	return nil
}
