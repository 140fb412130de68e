package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/client"
)

func (s *session) attachCommand() *cli.Command {
	var o client.AttachOptions
	return &cli.Command{
		Name:      "attach",
		Usage:     "put a file beside an artifact, as what refers to it",
		ArgsUsage: "REF FILE",
		UsageText: `carton-oci attach ghcr.io/org/m:1 sbom.json --type application/spdx+json
carton-oci attach oci:./layout:1 eval.csv --type text/csv`,
		Description: `An SBOM, a provenance, an evaluation: "carton-oci referrers REF" lists it, and
whoever deletes or copies REF can tell that it belongs there. REF keeps its
digest. The same file twice is attached once. The last line printed is the
digest of what was attached; with -q it is the only one.`,
		Flags: s.flags([]cli.Flag{
			text(&o.ArtifactType, "type", "what the file is, as the media type `TYPE`"),
			text(&o.MediaType, "media-type", "the file's own media `TYPE`, where it is another one"),
			annotationFlag(&o.Annotations, "annotate what is attached with `KEY=VALUE`"),
			yes(&o.DryRun, "dry-run", "say what would be sent, and send nothing"),
		}, s.registryFlags(s.chunkSizeFlag())),
		Action: s.command(func(c *cli.Context) error { return s.runAttach(c, o) }),
	}
}

func (s *session) runAttach(c *cli.Context, o client.AttachOptions) (err error) {
	if o.ArtifactType == "" {
		return withHint(usagef("attach", "want --type TYPE: what the file is"),
			"application/spdx+json, application/vnd.cyclonedx+json, text/markdown, text/csv, …")
	}
	if _, err := s.locate(c, c.Args().Get(0)); err != nil {
		return err
	}
	if o.Created, err = created(); err != nil {
		return err
	}
	if !o.DryRun {
		s.showProgress("attach")
	}
	o.Progress = s.progress
	result, err := s.client.Attach(c.Context, c.Args().Get(0), c.Args().Get(1), o)
	s.stopProgress()
	if err != nil {
		return hintToGoOn(err)
	}
	s.result(result, []string{result.Digest.String()}, func() {
		s.fields(
			[2]string{"subject", result.Subject.Reference},
			[2]string{"type", result.ArtifactType},
			[2]string{"file", fmt.Sprintf("%s (%s)", result.File.Name, errtext.Size(result.File.Size))},
			[2]string{"reference", result.Reference},
			[2]string{"digest", result.Digest.String()},
		)
	})
	return nil
}
