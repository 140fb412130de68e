package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// source is the SOURCE of a command.
type source struct {
	carton.Source
	verb     string
	name     string          // as it is shown
	digest   string          // of the image manifest; "" where it is no artifact
	artifact *convert.Source // nil where it is no artifact
	loose    *pack.Carton    // nil where it is a carton
	hashed   bool            // what is loose has hashes all the same
}

// openArg opens the first argument of a command, and wants more as named. A model
// that is no carton is opened as it is.
func (s *session) openArg(c *cli.Context, more ...string) (*source, error) {
	if err := wantArgs(c, append([]string{"SOURCE"}, more...)...); err != nil {
		return nil, err
	}
	return s.openWith(c, c.Args().Get(0), client.OpenOptions{Plain: true})
}

// look is openArg for who only looks at what is there: the policy is not asked.
func (s *session) look(c *cli.Context) (*source, error) {
	return s.openWith(c, c.Args().Get(0), client.OpenOptions{Plain: true, NoPolicy: true})
}

// open opens the carton that an argument names.
func (s *session) open(c *cli.Context, arg string) (*source, error) {
	return s.openWith(c, arg, client.OpenOptions{})
}

func (s *session) openWith(c *cli.Context, arg string, opts client.OpenOptions) (*source, error) {
	loc, err := s.locate(c, arg)
	if err != nil {
		return nil, err
	}
	if err := loc.LayoutFolder(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Command.Name, err)
	}
	out := &source{verb: c.Command.Name, name: loc.Redacted()}
	if loc.Kind == location.KindPath && pack.IsLoose(loc.Path) {
		return s.openLoose(c, out, loc.Path)
	}
	if loc.Kind == location.KindHub {
		return s.openHub(c, out, loc)
	}
	if out.Source, err = s.client.Open(c.Context, arg, opts); err != nil {
		return nil, out.fail(err)
	}
	if a, ok := out.Source.(*convert.Source); ok {
		out.artifact, out.digest = a, a.Descriptor().Digest.String()
	}
	return out, nil
}

// plain reports whether it is a model that is no carton.
func (s *source) plain() bool { return s.artifact != nil && s.artifact.Plain() }

// subject is what a result is about.
type subject struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"` // of the image manifest, where it is an artifact
	ModelHash string `json:"modelHash"`        // "" of what is no carton
}

func (s *source) subject() subject {
	about := subject{Reference: s.name, Digest: s.digest}
	if !s.plain() && s.loose == nil {
		about.ModelHash = s.Manifest().ModelHash()
	}
	return about
}

// info returns carton.toml, or what stands for it where there is none: what loose
// files say, or an artifact's config. Of that it returns what weights are, too.
func (s *source) info(ctx context.Context) (*carton.Info, convert.Details, error) {
	if s.loose != nil {
		return s.loose.Info, convert.Details{}, nil
	}
	if !s.plain() {
		info, err := carton.ReadInfo(ctx, s.Source)
		return info, convert.Details{}, err
	}
	config, err := s.artifact.Config(ctx)
	if errors.Is(err, layout.ErrFormat) { // which makes the model no worse
		config, err = &convert.ModelConfig{}, nil
	}
	if err != nil {
		return nil, convert.Details{}, err
	}
	what := config.Descriptor
	return &carton.Info{
		ModelName: cmp.Or(what.Title, what.Name), ShortDescription: what.Description,
		License: strings.Join(what.Licenses, ", "), Repository: what.SourceURL, Homepage: what.DocURL,
	}, config.Config, nil
}

// memberOf leaves out a hash that is none.
func (s *source) memberOf(m carton.Member) member {
	out := memberOf(m)
	if s.loose != nil && !s.hashed || s.plain() && !s.artifact.Hashed(m.Path) {
		out.Hash = ""
	}
	return out
}

// warnUnlisted warns of what an artifact holds besides its carton.
func (s *session) warnUnlisted(src *source) {
	if src.artifact != nil {
		s.warnOfLayers(src.artifact.Unlisted())
	}
}

// warnOfLayers warns of layers that hold no member.
func (s *session) warnOfLayers(names []string) {
	for _, name := range names {
		s.warnf("%s is in the artifact, and is no member: MANIFEST does not list it", errtext.Quote(name))
	}
}

// headers are the options for whoever looks into the headers of all weights.
func (s *session) headers(src *source) inspect.Options {
	return inspect.Options{Concurrency: s.concurrency, Local: true, Anywhere: src.plain()}
}

// noCarton is what is said of a model that is no carton.
const noCarton = "none: a model artifact without a carton"

// lacks returns noCarton where that is so, else "".
func (s *source) lacks() string {
	if s.plain() {
		return noCarton
	}
	return ""
}

// fail says what the command was doing.
func (s *source) fail(err error) error {
	return fmt.Errorf("%s %s: %w", s.verb, s.name, hintToUpdate(s.name, err))
}

// errNoCarton is what verify says of loose files.
var errNoCarton = errors.New("is no carton: nothing says what its files should be")

// wantLooks refuses what is no carton to commands that want one.
func (s *source) wantLooks() error {
	switch s.verb {
	case "ls", "cat", "inspect", "tensors", "diff":
		return nil
	}
	return withHint(s.fail(errNoCarton),
		"carton-oci pack %s makes a carton of it; inspect, tensors, diff, ls and cat take it as it is", s.name)
}

// openLoose opens model files and folders that are no carton, for the commands
// that say what is there or compare it. What is verified must be a carton.
func (s *session) openLoose(c *cli.Context, out *source, path string) (*source, error) {
	if err := out.wantLooks(); err != nil {
		return nil, err
	}
	if out.verb == "diff" {
		s.showProgress("hash")
	}
	src, err := pack.OpenLoose(c.Context, []string{path}, s.viewOptions(out))
	s.stopProgress()
	if err != nil {
		return nil, out.fail(err)
	}
	out.Source, out.loose = src, src
	if !s.quiet && !s.json && out.verb != "cat" && out.verb != "diff" {
		s.notef("%s is no carton: this is what pack would make one of; nothing is verified", out.name)
	}
	return out, nil
}

// viewOptions are those for files that are no carton: what compares them needs their
// hashes.
func (s *session) viewOptions(of *source) pack.Options {
	return pack.Options{Hashes: of.verb == "diff", Progress: s.progress}
}

// wantHash refuses to print a model hash that is none.
func (s *source) wantHash() error {
	if s.plain() {
		return s.fail(withHint(convert.ErrNoCarton, "it has no model hash; carton-oci resolve %s prints its digest",
			s.name))
	}
	if s.loose == nil {
		return nil
	}
	return withHint(s.fail(fmt.Errorf("%w, and it has no model hash", errNoCarton)),
		"carton-oci pack %s makes a carton of it", s.name)
}
