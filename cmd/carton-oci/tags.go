package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

func (s *session) tagsCommand() *cli.Command {
	var all bool
	return &cli.Command{
		Name:      "tags",
		Usage:     "list the tags of a repository or an image layout",
		ArgsUsage: "REPOSITORY",
		UsageText: `carton-oci tags ghcr.io/org/m
carton-oci tags oci:./layout`,
		Description: `In the order of the registry, which is that of names in most, a line each as
they come. Tags that registries without a list of referrers need for one
("sha256-…") are left out unless --all is given.`,
		Flags:  s.flags([]cli.Flag{yes(&all, "all", "list the tags of lists of referrers, too")}, s.registryFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runTags(c, all) }),
	}
}

func (s *session) runTags(c *cli.Context, all bool) error {
	place := c.Args().Get(0)
	loc, err := s.locate(c, place)
	if err != nil {
		return err
	}
	if loc.Reference() != "" {
		return usagef("tags", "%s names one artifact, want all of %s", loc, loc.Untagged())
	}
	list := []string{}
	for tag, err := range s.client.Tags(c.Context, place) {
		switch {
		case err != nil:
			return fmt.Errorf("tags %s: %w", loc.Redacted(), err)
		case !all && layout.IsReferrersTag(tag):
		case s.json:
			list = append(list, tag)
		default:
			s.linef("%s", tag)
		}
		if s.failed != nil { // nobody reads on
			return s.failed
		}
	}
	if s.json {
		s.object(struct {
			Reference string   `json:"reference"`
			Tags      []string `json:"tags"`
		}{loc.String(), list})
	}
	return nil
}
