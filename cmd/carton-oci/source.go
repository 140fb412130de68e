package main

import (
	"context"
	"fmt"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/urfave/cli/v2"
)

// source is the SOURCE of a command.
type source struct {
	carton.Source
	verb     string
	name     string          // as it is shown
	digest   string          // of the image manifest; "" where it is no artifact
	artifact *convert.Source // nil where it is no artifact
	loose    *pack.Carton    // nil where it is a carton
}

// openArg opens the first argument of a command, and wants more as named. A model
// that is no carton is opened as it is.
func (s *session) openArg(c *cli.Context, more ...string) (*source, error) {
	if err := wantArgs(c, append([]string{"SOURCE"}, more...)...); err != nil {
		return nil, err
	}
	return s.openWith(c, c.Args().Get(0), client.OpenModel)
}

// open opens the carton that an argument names.
func (s *session) open(c *cli.Context, arg string) (*source, error) {
	return s.openWith(c, arg, client.OpenSource)
}

type opener func(ctx context.Context, ref string, opts client.Options) (carton.Source, error)

func (s *session) openWith(c *cli.Context, arg string, open opener) (*source, error) {
	out := &source{verb: c.Command.Name}
	loc, err := location.Parse(arg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out.verb, err)
	}
	out.name = loc.Redacted()
	if loc.Kind == location.KindPath && pack.IsLoose(loc.Path) {
		return s.openLoose(c, out, loc.Path)
	}
	if err := s.logInAs(c, loc); err != nil {
		return nil, err
	}
	if out.Source, err = open(c.Context, arg, s.opts); err != nil {
		return nil, out.fail(err)
	}
	if a, ok := out.Source.(*convert.Source); ok {
		out.artifact, out.digest = a, a.Descriptor().Digest.String()
	}
	return out, nil
}

// plain reports whether it is a model that is no carton.
func (s *source) plain() bool { return s.artifact != nil && s.artifact.Plain() }

// modelHash returns the model hash, "" of what is no carton.
func (s *source) modelHash() string {
	if s.plain() || s.loose != nil {
		return ""
	}
	return s.Manifest().ModelHash()
}

// info returns carton.toml, or what loose files say.
func (s *source) info(ctx context.Context) (*carton.Info, error) {
	if s.loose != nil {
		return s.loose.Info, nil
	}
	return carton.ReadInfo(ctx, s.Source)
}

// memberOf leaves out a hash that is none.
func (s *source) memberOf(m carton.Member) member {
	out := memberOf(m)
	if s.loose != nil || s.plain() && !s.artifact.Hashed(m.Path) {
		out.Hash = ""
	}
	return out
}

// warnUnlisted warns of layers that hold no member.
func (s *session) warnUnlisted(names []string) {
	for _, name := range names {
		s.warnf("%s is in the artifact, and is no member: MANIFEST does not list it", carton.QuotePath(name))
	}
}

// unlisted returns what an artifact holds besides its carton.
func (s *source) unlisted() []string {
	if s.artifact == nil {
		return nil
	}
	return s.artifact.Unlisted()
}

// noCarton is what is said of a model that is no carton.
const noCarton = "none: a model artifact without a carton"

// fail says what the command was doing.
func (s *source) fail(err error) error {
	return fmt.Errorf("%s %s: %w", s.verb, s.name, adviseToUpdate(s.name, err))
}
