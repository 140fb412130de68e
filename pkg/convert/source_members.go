package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// findManifest looks for MANIFEST and parses it: a raw layer of that name, a tar
// layer that lists it, a member of any tar layer without a list. Wherever it is,
// its bytes are verified by its layer's digest.
func (s *Source) findManifest(ctx context.Context) (bool, error) {
	raw := []byte(nil)
	for i := range s.layers {
		l := &s.layers[i]
		var err error
		switch {
		case l.format == formatRaw && l.name == carton.ManifestName && l.symlink == "":
			raw, err = layout.ReadBlob(ctx, s.fetcher, s.manifest.Layers[i], carton.MaxManifestBytes)
		case slices.ContainsFunc(l.list, func(it sizedLine) bool { return it.line == manifestLine }):
			raw, err = s.readFromTar(ctx, i, carton.ManifestName, carton.MaxManifestBytes)
		default:
			continue
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", carton.ManifestName, err)
		}
		s.manifestLayer = i
		break
	}
	if raw == nil {
		var err error
		if raw, err = s.findManifestInside(ctx); raw == nil || err != nil {
			return false, err
		}
	}
	var err error
	s.carton, err = carton.ParseManifest(raw)
	return true, err
}

// findManifestInside looks into the tar layers that have no list.
func (s *Source) findManifestInside(ctx context.Context) ([]byte, error) {
	for i := range s.layers {
		l := &s.layers[i]
		if l.format == formatRaw || l.list != nil {
			continue
		}
		if err := s.scan(ctx, i); err != nil {
			return nil, err
		}
		for _, h := range l.entries {
			if h.Path == carton.ManifestName {
				s.manifestLayer = i
				return s.readFromTar(ctx, i, carton.ManifestName, carton.MaxManifestBytes)
			}
		}
	}
	return nil, nil
}

// locate finds out where every member is, as far as the image manifest tells.
// The remaining tar layers are read when somebody needs them.
func (s *Source) locate() error {
	for i := range s.layers {
		l := &s.layers[i]
		desc := s.manifest.Layers[i]
		switch {
		case l.unlisted:
		case l.format == formatRaw:
			if err := s.add(l.name, &place{layer: i, size: desc.Size, link: l.symlink}); err != nil {
				return err
			}
		case l.list == nil:
			s.unscanned = append(s.unscanned, i)
		default:
			if err := s.locateList(i); err != nil {
				return fmt.Errorf("layer %d: %s: %w", i+1, AnnotationMembers, err)
			}
		}
	}
	if len(s.unscanned) == 0 {
		return s.finish()
	}
	return nil
}

// locateList adds the members of a tar layer that lists them.
func (s *Source) locateList(i int) error {
	plan, err := planOf(s.carton, s.layers[i].list, s.hasModelsLink(i))
	if err != nil {
		return err
	}
	desc := s.manifest.Layers[i]
	if s.layers[i].format == formatTar && plan.Size() != desc.Size {
		return listError("its members make a tar of %d bytes, the layer has %d", plan.Size(), desc.Size)
	}
	s.layers[i].tar = &expectedTar{name: desc.Digest.String(), plan: plan}
	return s.addPlaces(i)
}

// addPlaces adds the members of a tar layer whose plan is known.
func (s *Source) addPlaces(i int) error {
	alias := s.hasModelsLink(i)
	for path, p := range s.layers[i].tar.places(i) {
		if alias && path == modelsLink.Path && p.link == modelsLink.Target {
			continue
		}
		if err := s.add(path, p); err != nil {
			return err
		}
	}
	return nil
}

// add takes in a member's place.
func (s *Source) add(path string, p *place) error {
	if path == carton.ManifestName {
		if p.layer == s.manifestLayer && !s.manifestSeen {
			s.manifestSeen = true
			return nil
		}
		return &carton.Error{Path: path, Kind: carton.ErrInsecurePath, Msg: "is in the artifact twice"}
	}
	e, ok := s.carton.Lookup(path)
	if !ok {
		return &carton.Error{
			Path: path, Kind: carton.ErrFormat,
			Msg: "is in the artifact, but is not listed in MANIFEST",
		}
	}
	if s.places[path] != nil {
		return &carton.Error{Path: path, Kind: carton.ErrInsecurePath, Msg: "is in the artifact twice"}
	}
	if p.layer >= 0 && s.isRaw(p) {
		want := digestOf(e.Hash)
		if got := s.manifest.Layers[p.layer].Digest; got != want {
			return &carton.Error{
				Path: path, Kind: carton.ErrChecksum,
				Msg: fmt.Sprintf("its layer is %s, want %s as MANIFEST lists", got, want),
			}
		}
	}
	s.places[path] = p
	return nil
}

// scanTars reads the tar layers whose members no annotation lists, once.
func (s *Source) scanTars(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members != nil || s.broken != nil {
		return s.broken
	}
	for _, i := range s.unscanned {
		if err := s.scan(ctx, i); err != nil {
			return err
		}
	}
	s.broken = s.addScanned(ctx)
	return s.broken
}

func (s *Source) addScanned(ctx context.Context) error {
	for _, i := range s.unscanned {
		if s.layers[i].unlisted = s.listsNothingOf(s.layers[i].entries); s.layers[i].unlisted {
			continue
		}
		if s.mapped() {
			if err := s.addMapped(ctx, i); err != nil {
				return err
			}
			continue
		}
		for _, h := range s.layers[i].entries {
			if err := s.add(h.Path, &place{layer: i, size: h.Size, off: h.Offset, link: h.Target}); err != nil {
				return err
			}
		}
	}
	return s.finish()
}

// addMapped adds the members of a tar layer of the mapping that has no list.
func (s *Source) addMapped(ctx context.Context, i int) error {
	if err := s.checkTar(ctx, i); err != nil {
		return err
	}
	return s.addPlaces(i)
}

// mapped reports whether the artifact says that it is one of the mapping.
func (s *Source) mapped() bool { return s.imageManifest.Annotations[AnnotationMapping] != "" }

// finish checks that the members are exactly MANIFEST's, and where symlinks end.
func (s *Source) finish() error {
	entries := s.carton.Entries()
	members := make([]carton.Member, 0, len(entries))
	for _, e := range entries {
		p := s.places[e.Path]
		if p == nil {
			return &carton.Error{
				Path: e.Path, Kind: carton.ErrFormat,
				Msg: "is listed in MANIFEST, but no layer of the artifact holds it",
			}
		}
		m := carton.Member{Path: e.Path, Target: p.link, Hash: e.Hash, Size: p.size, Place: carton.PlaceBlob}
		m.Ranged = p.layer < 0 || s.isRaw(p) || s.layers[p.layer].format == formatTar
		if p.layer >= 0 && !s.isRaw(p) && p.link == "" {
			m.Place, m.Bundle = carton.PlaceBundled, p.layer+1
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b carton.Member) int { return strings.Compare(a.Path, b.Path) })
	if err := s.resolveSymlinks(members); err != nil {
		return err
	}
	s.members = members
	return nil
}

// resolveSymlinks holds a plain artifact's symlinks to the rule of a carton's, as
// if its files lay below model/.
func (s *Source) resolveSymlinks(members []carton.Member) error {
	if !s.plain {
		return carton.ResolveSymlinks(members)
	}
	for i := range members {
		members[i].Path = modelFolder + members[i].Path
	}
	err := carton.ResolveSymlinks(members)
	for i := range members {
		members[i].Path = strings.TrimPrefix(members[i].Path, modelFolder)
	}
	return err
}

func listError(format string, args ...any) error {
	return &layout.Error{Kind: layout.ErrFormat, Msg: fmt.Sprintf(format, args...)}
}
