package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
)

func (s *session) tagsCommand() *cli.Command {
	var all, signed bool
	return &cli.Command{
		Name:      "tags",
		Usage:     "list the tags of a repository or an image layout",
		ArgsUsage: "REPOSITORY",
		UsageText: `carton-oci tags ghcr.io/org/m
carton-oci tags oci:./layout`,
		Description: `In the order of the registry, which is that of names in most, a line each as
they come. Tags that registries without a list of referrers need for one
("sha256-…") are left out unless --all is given.`,
		Flags: s.flags([]cli.Flag{
			yes(&all, "all", "list the tags of lists of referrers, too"),
			yes(&signed, "signatures",
				"say how many signatures are listed beside each, verified by nobody: two requests a tag, or three"),
		}, s.registryFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runTags(c, all, signed) }),
	}
}

func (s *session) runTags(c *cli.Context, all, signed bool) error {
	place := c.Args().Get(0)
	loc, err := s.locate(c, place)
	if err != nil {
		return err
	}
	if loc.Reference() != "" {
		return usagef("tags", "%s names one artifact, want all of %s", loc, loc.Untagged())
	}
	list := []string{}
	var counts map[string]int
	if signed {
		counts = map[string]int{}
	}
	for tag, err := range s.client.Tags(c.Context, place) {
		switch {
		case err != nil:
			return fmt.Errorf("tags %s: %w", loc.Redacted(), err)
		case !all && layout.IsReferrersTag(tag):
			continue
		}
		if signed {
			if counts[tag], err = s.signaturesOf(c, loc, tag); err != nil {
				return fmt.Errorf("tags %s: %w", loc.Redacted(), err)
			}
		}
		switch {
		case s.json:
			list = append(list, tag)
		case signed && !s.quiet:
			s.linef("%s  %s", tag, count(counts[tag], "signature"))
		default:
			s.linef("%s", tag)
		}
		if s.failed != nil { // nobody reads on
			return s.failed
		}
	}
	if s.json {
		s.object(struct {
			Reference  string         `json:"reference"`
			Tags       []string       `json:"tags"`
			Signatures map[string]int `json:"signatures,omitempty"`
		}{loc.String(), list, counts})
	}
	return nil
}

// signaturesOf counts the signatures that are listed beside what a tag points to.
func (s *session) signaturesOf(c *cli.Context, loc location.Location, tag string) (int, error) {
	loc.Tag = tag
	desc, err := s.client.Resolve(c.Context, loc.String())
	if err != nil {
		return 0, err
	}
	return s.client.Signatures(c.Context, loc.String(), desc)
}
