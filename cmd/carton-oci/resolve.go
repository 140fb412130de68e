package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

func (s *session) resolveCommand() *cli.Command {
	return &cli.Command{
		Name:      "resolve",
		Usage:     "print the digest that a reference stands for",
		ArgsUsage: "REF",
		UsageText: "carton-oci resolve -q ghcr.io/org/m:1",
		Flags:     s.flags(nil, s.registryFlags()),
		Action:    s.command(s.runResolve),
	}
}

func (s *session) runResolve(c *cli.Context) error {
	loc, err := s.locate(c, c.Args().Get(0))
	if err != nil {
		return err
	}
	if !loc.IsArtifact() {
		return fmt.Errorf("resolve: %w", loc.WantArtifact())
	}
	desc, err := s.client.Resolve(c.Context, c.Args().Get(0))
	if err != nil {
		return fmt.Errorf("resolve %s: %w", loc, err)
	}
	s.result(struct {
		Reference string `json:"reference"`
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int64  `json:"size"` // of the image manifest, in bytes
	}{loc.String(), desc.MediaType, desc.Digest.String(), desc.Size},
		[]string{desc.Digest.String()}, func() { s.linef("%s", desc.Digest) })
	return nil
}
