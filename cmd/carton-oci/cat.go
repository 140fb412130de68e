package main

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"
)

func (s *session) catCommand() *cli.Command {
	return &cli.Command{
		Name:      "cat",
		Usage:     "print one member of a carton",
		ArgsUsage: "SOURCE PATH",
		UsageText: "carton-oci cat ghcr.io/org/m:1 model/config.json",
		Description: `Bytes are printed as they come, and their hash is known at the end: exit code 0
says that what was printed is what MANIFEST lists, and any other that it is not
to be used.`,
		Flags: s.flags(nil, s.sourceFlags()),
		Action: s.command(func(c *cli.Context) error {
			src, err := s.openArg(c, "PATH")
			if err != nil {
				return err
			}
			defer src.Close()
			r, err := src.Open(c.Context, c.Args().Get(1))
			if err != nil {
				return hintMember(src.fail(err), src, c.Args().Get(1))
			}
			defer r.Close()
			if _, err = io.Copy(s.out, r); err != nil {
				return src.fail(err)
			}
			return nil
		}),
	}
}

// hintMember adds to the error about a path that is not in the carton which one
// may have been meant.
func hintMember(err error, src *source, path string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range src.Manifest().Entries() {
		if strings.HasSuffix(e.Path, "/"+path) {
			return withHint(err, "paths begin with the folder: carton-oci cat %s %s", src.name, e.Path)
		}
	}
	return withHint(err, "carton-oci ls %s lists the members", src.name)
}
