package convert

import (
	"cmp"
	"slices"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Other programs add layers to artifacts: modctl attach adds a file. What MANIFEST
// does not list is no member of the carton, and the carton is none the worse for
// it. Such a layer is left out, and [Source.Unlisted] names it. A tar that holds
// both members and other files stays refused: programs that unpack it would have
// both.

// leaveUnlisted leaves out raw layers that MANIFEST does not list.
func (s *Source) leaveUnlisted() {
	for i := range s.layers {
		l := &s.layers[i]
		if _, ok := s.carton.Lookup(l.name); l.format == formatRaw && l.name != carton.ManifestName {
			l.unlisted = !ok
		}
	}
}

// listsNothingOf reports whether MANIFEST lists none of a tar's files.
func (s *Source) listsNothingOf(entries []layout.TarHeader) bool {
	return len(entries) > 0 && !slices.ContainsFunc(entries, func(h layout.TarHeader) bool {
		_, ok := s.carton.Lookup(h.Path)
		return ok || h.Path == carton.ManifestName
	})
}

// Unlisted returns the names of the layers that MANIFEST lists nothing of, after
// Members: of a raw layer its file's, of a tar its title or digest.
func (s *Source) Unlisted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for i := range s.layers {
		if s.layers[i].unlisted {
			names = append(names, s.nameOf(i))
		}
	}
	return names
}

func (s *Source) nameOf(i int) string {
	desc := s.manifest.Layers[i]
	return cmp.Or(s.layers[i].name, desc.Annotations[ocispec.AnnotationTitle], desc.Digest.String())
}

// unlistedText is what is said of a layer that is left out.
const unlistedText = "is in the artifact, and is no member: MANIFEST does not list it"

// Findings implements [carton.Source]: what the artifact has besides the carton.
func (s *Source) Findings() []carton.Finding {
	var found []carton.Finding
	for _, name := range s.Unlisted() {
		found = append(found, carton.Finding{
			Path: name, Err: &carton.Error{Path: name, Kind: carton.ErrFormat, Msg: unlistedText},
		})
	}
	return found
}
