package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"
)

func (s *session) rmCommand() *cli.Command {
	var o client.DeleteOptions
	var sure bool
	return &cli.Command{
		Name:      "rm",
		Usage:     "delete a tag or an artifact",
		ArgsUsage: "REF",
		UsageText: `carton-oci rm ghcr.io/org/m:old
carton-oci rm --dry-run ghcr.io/org/m:old
carton-oci rm --yes oci:./layout:1`,
		Description: `A tag goes alone: what it points to stays as long as another tag does, and in a
registry until that cleans up. REPOSITORY@sha256:… deletes the artifact itself;
one that has tags, and all of those, with --force. In an image layout the last
tag takes the artifact along, and the blobs that nothing else there needs.

It says first what goes and what is left behind, such as the image form and
signatures, and asks on a terminal; elsewhere it wants --yes. Many registries
delete nothing, or no tags: they answer 405.`,
		Flags: s.flags([]cli.Flag{
			yes(&sure, "yes", "don't ask", "y"),
			yes(&o.Tagged, "force", "delete what tags point to, and those with it", "f"),
			yes(&o.DryRun, "dry-run", "say what would be deleted, and delete nothing"),
		}, s.registryFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runRm(c, o, sure) }),
	}
}

func (s *session) runRm(c *cli.Context, o client.DeleteOptions, sure bool) error {
	ref := c.Args().Get(0)
	if _, err := s.locate(c, ref); err != nil {
		return err
	}
	ask := !sure && !o.DryRun
	if ask && !term.IsTerminal(int(os.Stdin.Fd())) {
		return withHint(usagef("rm", "nobody is there to be asked: want --yes"), "--dry-run says what would be deleted")
	}
	if ask {
		o.Planned = func(r *client.DeleteResult) error { return s.confirm(c, r) }
	}
	result, err := s.client.Delete(c.Context, ref, o)
	if err != nil {
		return err
	}
	s.result(result, []string{result.Digest.String()}, func() { s.fields(deletion(result)...) })
	return nil
}

// errNotConfirmed: somebody was asked, and did not say yes.
var errNotConfirmed = errors.New("nothing was deleted")

// confirm says what a deletion does, and asks whether to go on.
func (s *session) confirm(c *cli.Context, r *client.DeleteResult) error {
	for _, line := range deletion(r)[1:] {
		if line[1] != "" {
			s.sayf("", "%s: %s", line[0], line[1])
		}
	}
	fmt.Fprintf(s.err, "delete %s? [y/N] ", remark(r.Reference))
	answer, err := wait(c.Context, readLine)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errNotConfirmed
	}
	return nil
}

// tagsShown is how many of an artifact's tags are named.
const tagsShown = 10

// deletion says what goes and what stays.
func deletion(r *client.DeleteResult) [][2]string {
	head := "deleted"
	if r.DryRun {
		head = "would go"
	}
	tags := strings.Join(r.Tags[:min(len(r.Tags), tagsShown)], ", ")
	if n := len(r.Tags) - tagsShown; n > 0 {
		tags += fmt.Sprintf(" and %d more", n)
	}
	loc, _ := location.Parse(r.Reference)
	var what, others string
	switch {
	case loc.Tag == "":
		others = tags
		what = "goes"
	case len(r.Tags) > 0:
		what = "stays: it has the tags " + tags
		if len(r.Tags) == 1 {
			what = "stays: it has the tag " + tags
		}
	case r.Manifest:
		what = "goes, with the blobs that nothing else needs"
	case r.TagsUnknown:
		what = "stays as long as other tags point to it; there are too many to ask"
	default:
		what = "stays without a tag, until the registry cleans up"
	}
	image := ""
	if r.Image != "" {
		loc.Tag, loc.Digest = r.Image, ""
		image = "stays: carton-oci rm " + loc.String()
	}
	return [][2]string{
		{head, r.Reference},
		{"tags", others},
		{"artifact", what},
		{"image form", image},
		{"referrers", referrersLeft(r)},
		{"digest", r.Digest.String()},
	}
}

// referrersLeft says what refers to a manifest that may be gone.
func referrersLeft(r *client.DeleteResult) string {
	if len(r.Referrers) == 0 || len(r.Tags) > 0 && !r.Manifest {
		return ""
	}
	seen := map[string]bool{}
	var types []string
	for _, ref := range r.Referrers {
		if !seen[ref.ArtifactType] && len(types) < 5 {
			seen[ref.ArtifactType] = true
			types = append(types, ref.ArtifactType)
		}
	}
	if n := len(r.Referrers); n > 1 {
		return fmt.Sprintf("%d stay, with nothing to refer to: %s", n, strings.Join(types, ", "))
	}
	return "one stays, with nothing to refer to: " + strings.Join(types, ", ")
}
