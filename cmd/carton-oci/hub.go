package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/hub"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// listHub asks the hub for a repository's files. It reaches the hub as it reaches
// registries: with the same certificates, proxy, patience and log.
func (s *session) listHub(ctx context.Context, verb string, loc location.Location) (pack.Listing, error) {
	o, err := hub.Environment()
	if err != nil {
		return pack.Listing{}, err
	}
	web, err := registry.NewClient(s.options.Registry)
	if err != nil {
		return pack.Listing{}, err
	}
	o.Web, o.Policy, o.UserAgent = web.WebClient(), s.options.Registry.Policy, s.options.Registry.UserAgent
	o.AllowHTTP = s.options.Registry.PlainHTTP
	h, err := hub.New(o)
	if err != nil {
		return pack.Listing{}, err
	}
	snapshot, err := h.Open(ctx, loc.Repository, loc.Revision)
	if err != nil {
		return pack.Listing{}, err
	}
	if files, size := snapshot.InCache(); files > 0 && (verb == "push" || verb == "pack") {
		s.notef("%s (%s) are in the cache, and are not downloaded", count(files, "file"), errtext.Size(size))
	}
	return snapshot.Listing(), nil
}

// cachedHub is the folder in the cache of the hub's tools that stands for a repository
// where the environment forbids asking the hub, "" where it does not.
func cachedHub(loc location.Location) (string, error) {
	o, err := hub.Environment()
	if err != nil || !o.Offline || o.Cache == "" {
		return "", err
	}
	return o.Cached(loc.Repository, loc.Revision)
}

// openHub opens a hub's repository for the commands that say what is there, or
// compare it.
func (s *session) openHub(c *cli.Context, out *source, loc location.Location) (*source, error) {
	if err := out.wantLooks(); err != nil {
		return nil, err
	}
	dir, err := cachedHub(loc)
	if err != nil {
		return nil, out.fail(err)
	}
	if dir != "" {
		return s.openLoose(c, out, dir)
	}
	files, err := s.listHub(c.Context, out.verb, loc)
	if err != nil {
		return nil, out.fail(err)
	}
	src, err := pack.ViewListing(c.Context, files, s.viewOptions(out))
	if err != nil {
		return nil, out.fail(err)
	}
	out.Source, out.loose, out.hashed = src, src, true
	return out, nil
}

// hintDamaged says what mends a repository whose files are not what a hub's list or
// cache says.
func hintDamaged(src *pack.Carton, err error) error {
	if src == nil || src.Snapshot == "" || !errors.Is(err, carton.ErrChecksum) && !errors.Is(err, layout.ErrDigest) {
		return err
	}
	return withHint(err, "a file is not what the hub's list, or its name in the cache, says: of a cache, remove it "+
		"and run hf download again")
}

// hubRepository is the one hub's repository among paths, false where there is none.
func hubRepository(verb string, paths []string) (location.Location, bool, error) {
	isHub := func(name string) bool {
		loc, err := location.Parse(name)
		return err == nil && loc.Kind == location.KindHub
	}
	i := slices.IndexFunc(paths, isHub)
	switch {
	case i < 0:
		return location.Location{}, false, nil
	case len(paths) > 1:
		return location.Location{}, false, usagef(verb, "%s is a repository: want it alone", quoted(paths[i]))
	}
	loc, err := location.Parse(paths[i])
	return loc, true, err
}

// originOf returns the annotations that say which commit of which hub's repository was
// packed, nil for none.
func originOf(src *pack.Carton) (map[string]string, error) {
	if src == nil || !hubname.IsCommit(src.Snapshot) || !hubname.IsRepository(src.Repository) {
		return nil, nil
	}
	o, err := hub.Environment()
	if err != nil {
		return nil, err
	}
	page, err := o.Page(src.Repository)
	if err != nil {
		return nil, err
	}
	values := map[string]string{ocispec.AnnotationRevision: src.Snapshot}
	if src.Info.Repository == "" {
		values[ocispec.AnnotationSource] = page
	}
	return values, nil
}

// noteOrigin annotates an artifact with the repository and commit of a hub that it
// was made of, where nobody said something else.
func noteOrigin(m *convert.Options, src *pack.Carton) error {
	values, err := originOf(src)
	if err == nil && values != nil {
		annotate(m, values)
	}
	return err
}

// hintOrigin says how a carton that was packed is pushed as what its source would
// be: a carton does not say where it is from, or it would have another model hash
// than the same files from elsewhere.
func (s *session) hintOrigin(src *pack.Carton) error {
	values, err := originOf(src)
	if err != nil || values == nil {
		return err
	}
	format, args := "the carton does not say where it is from, and a push of it has another digest than one of the "+
		"repository, unless it has", []any(nil)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		format += " --annotation %s"
		args = append(args, key+"="+values[key])
	}
	s.hints(hint.New(format, args...))
	return nil
}

// openFiles packs the files at paths, or those of the hub's repository that they
// name.
func (s *session) openFiles(c *cli.Context, paths []string, opts pack.Options) (*pack.Carton, error) {
	loc, isHub, err := hubRepository(c.Command.Name, paths)
	if err != nil {
		return nil, err
	}
	if !isHub {
		return pack.Open(c.Context, paths, opts)
	}
	dir, err := cachedHub(loc)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		return pack.Open(c.Context, []string{dir}, opts)
	}
	files, err := s.listHub(c.Context, c.Command.Name, loc)
	if err != nil {
		return nil, err
	}
	return pack.OpenListing(c.Context, files, opts)
}
