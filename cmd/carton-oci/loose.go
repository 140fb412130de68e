package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// errNoCarton is what verify and diff say of loose files.
var errNoCarton = errors.New("is no carton: nothing says what its files should be")

// openLoose opens model files and folders that are no carton, for the commands
// that say what is there. What compares it with something wants a carton.
func (s *session) openLoose(c *cli.Context, out *source, path string) (*source, error) {
	switch out.verb {
	case "ls", "cat", "inspect", "tensors":
	default:
		return nil, withHint(out.fail(errNoCarton), "carton-oci pack %s makes a carton of it; inspect, tensors, ls and cat take it as it is", out.name)
	}
	src, err := pack.OpenLoose(c.Context, []string{path}, pack.Options{})
	if err != nil {
		return nil, out.fail(err)
	}
	out.Source, out.loose = src, src
	if !s.quiet && !s.json && out.verb != "cat" {
		s.notef("%s is no carton: this is what pack would make one of; nothing is verified", out.name)
	}
	return out, nil
}

// wantHash refuses to print a model hash that is none.
func (s *source) wantHash() error {
	if s.plain() {
		return s.fail(withHint(convert.ErrNoCarton, "it has no model hash; carton-oci resolve %s prints its digest", s.name))
	}
	if s.loose == nil {
		return nil
	}
	return withHint(s.fail(fmt.Errorf("%w, and it has no model hash", errNoCarton)), "carton-oci pack %s makes a carton of it", s.name)
}
