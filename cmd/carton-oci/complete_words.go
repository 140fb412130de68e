package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// completeArgument offers what the usage of a command names next.
func (s *session) completeArgument(ctx context.Context, c *completions, cmd *cli.Command, args []string) {
	kinds := strings.Fields(cmd.ArgsUsage)
	if len(kinds) == 0 {
		return
	}
	i := len(args)
	if last := len(kinds) - 1; i > last && strings.HasSuffix(kinds[last], "...") {
		i = last // it may be repeated
	}
	if i >= len(kinds) {
		return
	}
	switch kind := strings.Trim(kinds[i], "[]."); kind {
	case "SHELL":
		c.offerAll(shells...)
	case "REGISTRY":
		s.offerHosts(c, "")
	case "DIR_OR_FILE", "FILE":
		c.anyFile = true
	case "PATH":
		s.offerMembers(ctx, c, args[0])
	case "GLOB":
		s.offerTensors(ctx, c, args[0])
	case "TAG":
		s.offerTags(ctx, c, "", args[0])
	case "SOURCE", "A", "B", "REF", "REF[,TAG", "REF2[,TAG":
		s.offerPlaces(ctx, c, strings.HasSuffix(kind, "[,TAG"))
	case "REPOSITORY":
		s.offerPlaces(ctx, c, true)
	}
}

// completeValue offers values of a flag, by its placeholder.
func (s *session) completeValue(ctx context.Context, c *completions, f cli.Flag) {
	if f, ok := f.(*choiceFlag); ok {
		c.offerAll(f.values...)
		return
	}
	parts := strings.Split(f.(cli.DocGenerationFlag).GetUsage(), "`")
	if len(parts) < 2 {
		return
	}
	switch kind := parts[1]; {
	case f.Names()[0] == "runner":
		for _, r := range pack.Runners {
			c.offer(r.Name, r.Expects)
		}
	case kind == "FILE", kind == "KEY":
		c.anyFile = true
	case kind == "DIR":
		c.dirs = true
	case kind == "SOURCE":
		s.offerPlaces(ctx, c, false)
	case kind == "HOST/REPOSITORY":
		s.offerHosts(c, "/")
	}
}

// offerPlaces offers what location.Parse reads: files, image layouts and what is in
// them, registries, tags. remote leaves files out.
func (s *session) offerPlaces(ctx context.Context, c *completions, remote bool) {
	isPath := strings.HasPrefix(c.cur, ".") || strings.HasPrefix(c.cur, "/") || strings.HasPrefix(c.cur, "~")
	if rest, ok := strings.CutPrefix(c.cur, "oci:"); ok && !strings.HasPrefix(rest, "//") {
		s.offerLayouts(ctx, c, rest)
		return
	}
	if i := strings.LastIndexByte(c.cur, ':'); i > 0 &&
		(strings.HasSuffix(c.cur[:i], location.ArchiveExt) || !isPath && strings.Contains(c.cur[:i], "/")) {
		s.offerTags(ctx, c, c.cur[:i+1], c.cur[:i])
		return
	}
	if !remote {
		c.files = []string{location.Ext, location.ArchiveExt}
		for _, f := range filekind.Formats {
			c.files = append(c.files, f.Suffixes...)
		}
	}
	if !isPath {
		s.offerHosts(c, "/")
		c.offer("oci:", "an image layout on this machine")
		c.nospace = len(c.words) > 0
	}
}

// offerTags offers a place's tags; head is what stands before them in the word. Tags
// behind commas, where several are written, begin anew.
func (s *session) offerTags(ctx context.Context, c *completions, head, place string) {
	if i := strings.LastIndexByte(c.cur, ','); i > len(head) {
		head = c.cur[:i+1]
	}
	for tag, err := range s.client.Tags(ctx, place) {
		if err != nil || len(c.words) >= completionMost {
			return
		}
		c.offer(head+tag, "")
	}
}

// offerLayouts offers folders behind "oci:", and the tags of those that are image
// layouts.
func (s *session) offerLayouts(ctx context.Context, c *completions, rest string) {
	if i := strings.LastIndexByte(rest, ':'); i > 0 && !strings.ContainsAny(rest[i:], `/\`) {
		s.offerTags(ctx, c, "oci:"+rest[:i+1], "oci:"+rest[:i])
		return
	}
	dir, _ := filepath.Split(rest)
	where := cmp.Or(localfile.ExpandHome(dir), ".")
	entries, err := os.ReadDir(where)
	if err != nil {
		return
	}
	c.nospace = true
	for _, e := range entries {
		name := filepath.Join(where, e.Name())
		if info, err := os.Stat(name); err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") && dir == rest {
			continue
		}
		if _, err := os.Stat(filepath.Join(name, "oci-layout")); err == nil {
			c.offer("oci:"+dir+e.Name()+":", "an image layout")
		} else {
			c.offer("oci:"+dir+e.Name()+"/", "")
		}
	}
}

// offerHosts offers the registries that somebody is logged in to.
func (s *session) offerHosts(c *completions, behind string) {
	for _, host := range registry.DockerCredentials(s.registryConfig).Hosts() {
		c.offer(host+behind, "logged in")
	}
	c.nospace = behind != ""
}

// offerMembers offers a carton's members as shells do files: one folder at a time.
func (s *session) offerMembers(ctx context.Context, c *completions, place string) {
	src, err := s.openForCompletion(ctx, place)
	if err != nil {
		return
	}
	defer src.Close()
	c.offer(carton.ManifestName, "")
	for _, e := range src.Manifest().Entries() {
		rest, ok := strings.CutPrefix(e.Path, c.cur)
		if !ok {
			continue
		}
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			rest = rest[:i+1]
		}
		c.offer(c.cur+rest, "")
	}
	// Whoever is offered one folder goes on in it.
	c.nospace = len(c.words) == 1 && strings.HasSuffix(c.words[0], "/")
}

// offerTensors offers the names of tensors.
func (s *session) offerTensors(ctx context.Context, c *completions, place string) {
	src, err := s.openForCompletion(ctx, place)
	if err != nil {
		return
	}
	defer src.Close()
	tensors, _, err := inspect.Tensors(ctx, src, inspect.Options{Local: true})
	if err != nil {
		return
	}
	for _, t := range tensors {
		c.offer(t.Name, strings.TrimSpace(shownType(t.DType)+" "+shownShape(t.Shape)))
	}
}

// openForCompletion opens what a word names, files that are no carton too.
func (s *session) openForCompletion(ctx context.Context, place string) (carton.Source, error) {
	loc, err := location.Parse(place)
	if err != nil {
		return nil, err
	}
	if loc.Kind == location.KindPath && pack.IsLoose(loc.Path) {
		return pack.OpenLoose(ctx, []string{loc.Path}, pack.Options{})
	}
	return s.client.Open(ctx, place, client.OpenOptions{Plain: true})
}
