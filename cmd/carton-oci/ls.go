package main

import (
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

func (s *session) lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list the members of a carton",
		ArgsUsage: "SOURCE",
		UsageText: "carton-oci ls ghcr.io/org/m:1",
		Description: `Path, size, and where the bytes are. Nothing is downloaded but the list. Of a
model artifact that holds no carton these are its files.`,
		Flags:  s.flags(nil, s.sourceFlags()),
		Action: s.command(s.runLs),
	}
}

// listing is what `ls --format json` prints.
type listing struct {
	subject
	Members []member `json:"members"`
}

type member struct {
	Path   string `json:"path"`
	Size   *int64 `json:"size"` // in bytes; null where nobody knows it yet
	Hash   string `json:"hash"` // "" where nobody knows it: of loose files, and in tar layers of what is no carton
	Place  string `json:"place"`
	Target string `json:"target,omitempty"` // of a symlink
}

func memberOf(m carton.Member) member {
	out := member{Path: m.Path, Hash: m.Hash, Place: m.Place.String(), Target: m.Target}
	if m.Size >= 0 {
		out.Size = &m.Size
	}
	return out
}

func (s *session) runLs(c *cli.Context) error {
	src, err := s.look(c)
	if err != nil {
		return err
	}
	defer src.Close()
	members, err := src.Members(c.Context)
	if err != nil {
		return src.fail(err)
	}
	s.warnUnlisted(src)
	paths := listOf(members, func(m carton.Member) string { return m.Path })
	s.result(listing{src.subject(), listOf(members, src.memberOf)}, paths, func() {
		rows := [][]string{{"PATH", "SIZE", "PLACE"}}
		for _, m := range members {
			rows = append(rows, []string{shownPath(m), errtext.Size(m.Size), m.Place.String()})
		}
		s.table(rows)
	})
	if src.plain() {
		s.notef("%s: these are its files; nothing but their layers' digests vouches for them", noCarton)
	}
	return nil
}

// shownPath writes a member's path, of a symlink as ls does.
func shownPath(m carton.Member) string {
	if m.Target == "" {
		return m.Path
	}
	return m.Path + " -> " + m.Target
}
