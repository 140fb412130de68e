package main

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"
)

func (s *session) manifestCommand() *cli.Command {
	return &cli.Command{
		Name:      "manifest",
		Usage:     "print the manifest that a reference stands for",
		ArgsUsage: "REF",
		UsageText: "carton-oci manifest ghcr.io/org/m:1",
		Description: `Byte for byte, so that its sha256 is the digest of REF. Of an index, that. With
--format json it is indented.`,
		Flags:  s.flags(nil, s.registryFlags()),
		Action: s.command(s.runManifest),
	}
}

func (s *session) runManifest(c *cli.Context) error {
	ref := c.Args().Get(0)
	if _, err := s.locate(c, ref); err != nil {
		return err
	}
	_, content, err := s.client.Manifest(c.Context, ref)
	if err != nil {
		return err
	}
	if !s.json {
		s.write(string(content))
		return nil
	}
	if !json.Valid(content) {
		return fmt.Errorf("manifest %s: is not JSON: leave out --format json", ref)
	}
	s.object(json.RawMessage(content))
	return nil
}
