package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// packAsked returns the name of a flag of packFlags that is given, "" for none.
func packAsked(c *cli.Context) string {
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; f.(cli.CategorizableFlag).GetCategory() == whatIsPacked && c.IsSet(name) {
			return name
		}
	}
	return ""
}

// packLoose packs the SOURCE of a push on the way, where it is no carton but
// loose files, or where a flag of packFlags says so. It returns nil for any other.
// An image layout to push to must not lie in what is packed.
func (s *session) packLoose(
	c *cli.Context, source string, to location.Location, opts pack.Options,
) (*pack.Carton, error) {
	loc, err := location.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	asked := packAsked(c)
	switch {
	case loc.Kind == location.KindHub:
		loc.Path = loc.String()
	case asked == "" && (loc.Kind != location.KindPath || !pack.IsLoose(loc.Path)):
		return nil, nil
	case loc.Kind != location.KindPath:
		return nil, usagef("push", "--%s is for a folder or file that is packed on the way: got %s", asked,
			quoted(loc.Redacted()))
	}
	if to.IsLocal() {
		if err := notInside("push", to.Path, packInputs([]string{loc.Path}, opts)); err != nil {
			return nil, withHint(err, "name a place elsewhere")
		}
	}
	loose, err := s.pack(c, []string{loc.Path}, opts)
	if err != nil {
		return nil, err
	}
	if loc.Kind == location.KindHub {
		of := ""
		if loose.Repository != loc.Repository {
			of = " of " + loose.Repository
		}
		s.notef("%s is the commit %s%s", loc, loose.Snapshot, of)
	}
	for _, f := range loose.Filled {
		if f.Field == "runner.runner_name" {
			s.notef("filled in %s = %s (%s)", f.Field, f.Value, f.From)
		}
	}
	if len(loose.LeftOut) > 0 {
		s.notef("left out %s", s.shownLeftOut(loose.LeftOut))
	}
	return loose, err
}

// hintToUpdate adds to an error about a folder that is a carton what to do if
// its files were changed on purpose.
func hintToUpdate(name string, err error) error {
	var about *carton.Error
	if !pack.IsCartonFolder(name) || !errors.As(err, &about) ||
		!errors.Is(err, carton.ErrChecksum) && !strings.Contains(about.Msg, carton.ManifestName) {
		return err
	}
	return withHint(err, "if the files were changed on purpose: carton-oci pack %s --update -o FILE.carton, or push "+
		"with --update, makes a new MANIFEST", name)
}

// pushCarton pushes what was packed on the way, or else the SOURCE as it is.
func (s *session) pushCarton(
	ctx context.Context, loose *pack.Carton, source, ref string, opts client.PushOptions,
) (*client.PushResult, error) {
	if loose == nil {
		result, err := s.client.Push(ctx, source, ref, opts)
		if loc, locErr := location.Parse(source); locErr == nil && loc.Kind == location.KindPath {
			err = hintToUpdate(loc.Path, err)
		}
		return result, err
	}
	defer loose.Close()
	return s.client.PushSource(ctx, loose, source, ref, opts)
}
