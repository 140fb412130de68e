package main

import (
	"io"

	"github.com/urfave/cli/v2"
)

func catCommand(out *printer) *cli.Command {
	return &cli.Command{
		Name:        "cat",
		Usage:       "print one member of a carton",
		ArgsUsage:   "SOURCE PATH",
		Description: `Exit code 0 says that what was printed has the hash that MANIFEST lists.`,
		Flags:       flags(nil, sourceFlags()),
		Action: command(out, func(c *cli.Context, s *session) error {
			src, err := s.openArg(c, "PATH")
			if err != nil {
				return err
			}
			defer src.Close()
			r, err := src.Open(c.Context, c.Args().Get(1))
			if err != nil {
				return src.fail(err)
			}
			defer r.Close()
			if _, err = io.Copy(s.out, r); err != nil {
				return src.fail(err)
			}
			return nil
		}),
	}
}
