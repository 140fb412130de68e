package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/client"
)

func (s *session) referrersCommand() *cli.Command {
	var artifactType string
	return &cli.Command{
		Name:      "referrers",
		Usage:     "list what refers to an artifact, such as signatures",
		ArgsUsage: "REF",
		UsageText: `carton-oci referrers ghcr.io/org/m:1
carton-oci referrers -q --type application/spdx+json ghcr.io/org/m:1`,
		Description: `What is listed is fetched, and left out with a warning where it does not refer
to REF. Whoever may push can attach: nothing here says who did. With -q the
digests alone; REPOSITORY@DIGEST is a reference to each.`,
		Flags: s.flags([]cli.Flag{text(&artifactType, "type", "only what is of the artifactType `TYPE`")},
			s.registryFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runReferrers(c, artifactType) }),
	}
}

// leftOutMost is how many of those that were left out are named.
const leftOutMost = 10

func (s *session) runReferrers(c *cli.Context, artifactType string) error {
	ref := c.Args().Get(0)
	if _, err := s.locate(c, ref); err != nil {
		return err
	}
	result, err := s.client.Referrers(c.Context, ref, artifactType)
	if err != nil {
		return err
	}
	for _, text := range result.LeftOut[:min(len(result.LeftOut), leftOutMost)] {
		s.warnf("left out: %s", text)
	}
	if n := len(result.LeftOut) - leftOutMost; n > 0 {
		s.warnf("left out: %d more", n)
	}
	digests := listOf(result.Referrers, func(r client.ReferrerInfo) string { return r.Digest.String() })
	s.result(result, digests, func() {
		if len(digests) == 0 {
			s.notef("nothing refers to %s", result.Reference)
			return
		}
		rows := [][]string{{"TYPE", "SIZE", "FILE", "DIGEST", "ANNOTATIONS"}}
		for _, r := range result.Referrers {
			rows = append(rows, referrerRow(r))
		}
		s.table(rows)
	})
	return nil
}

// referrerRow is a referrer as a row of the table. Its size is that of its files.
func referrerRow(r client.ReferrerInfo) []string {
	var size int64
	var names, annotations []string
	for _, f := range r.Files {
		size += f.Size
		if f.Name != "" {
			names = append(names, f.Name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Annotations)) {
		annotations = append(annotations, key+"="+r.Annotations[key])
	}
	return []string{
		r.ArtifactType, errtext.Size(size), strings.Join(names, ", "), r.Digest.String(),
		strings.Join(annotations, ", "),
	}
}
