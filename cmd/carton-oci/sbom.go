package main

import (
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/sbom"
)

func (s *session) sbomCommand() *cli.Command {
	return &cli.Command{
		Name:      "sbom",
		Usage:     "print a bill of materials of a model (CycloneDX)",
		ArgsUsage: "SOURCE",
		UsageText: "carton-oci sbom ghcr.io/org/m:1 >m.cdx.json",
		Description: `A CycloneDX 1.6 ML-BOM in JSON of what MANIFEST, carton.toml and the headers of
weights say: members with their hashes, license, inputs and outputs, formats,
parameters. No weight is read, nothing is verified, and the same model gives the
same bytes. "carton-oci attach" puts it beside the model, as a document of type
application/vnd.cyclonedx+json.`,
		Flags: s.flags(nil, s.sourceFlags()),
		Action: s.command(func(c *cli.Context) error {
			src, err := s.look(c)
			if err != nil {
				return err
			}
			defer src.Close()
			if err := src.wantHash(); err != nil {
				return err
			}
			doc, err := s.billOf(c, src)
			if err != nil {
				return src.fail(err)
			}
			_, err = s.out.Write(doc)
			return err
		}),
	}
}

// billOf describes a carton.
func (s *session) billOf(c *cli.Context, src *source) ([]byte, error) {
	info, _, err := src.info(c.Context)
	if err != nil {
		return nil, err
	}
	members, err := src.Members(c.Context)
	if err != nil {
		return nil, err
	}
	facts, err := inspect.DescribeMembers(c.Context, src, members, s.headers(src))
	if err != nil {
		return nil, err
	}
	return sbom.CycloneDX(sbom.Model{Manifest: src.Manifest(), Info: info, Members: members, Facts: facts})
}
