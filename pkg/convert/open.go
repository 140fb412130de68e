package convert

import (
	"context"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// OpenOptions say how an artifact is opened. The zero value opens cartons.
type OpenOptions struct {
	// Wrap makes a carton of an artifact that holds a model and no carton. nil
	// refuses one.
	Wrap *carton.Runner
	// Plain opens an artifact that holds a model and no carton as what it is: see
	// [Source.Plain]. Wrap comes first.
	Plain bool
	// Origin is the repository that the artifact is in, so that [Build] of the
	// source can name it as one that its blobs can be mounted from.
	Origin layout.Origin
	// ReadsConfig says that the config will be read ([Copy] does), so that it can be
	// fetched together with the rest.
	ReadsConfig bool
}

// Open opens the artifact that desc describes as a carton. It reads the image
// manifest and MANIFEST, and begins to fetch carton.toml. Where MANIFEST is not a
// layer of its own it looks for it, and where there is none it reads what it needs
// to make one.
//
// It accepts the media types of all families in any mix, raw and tar,
// compressed or not, whoever pushed them. Anything that is no model artifact is
// ErrNoCarton, with a hint which program reads it; so is a model without a
// carton, unless opts say what to make of it. An artifact with a mapping number that is not 1 is
// carton.ErrVersion; names, paths and members that break a carton's rules are
// what pkg/carton calls them.
//
// The source gives up its requests when it is closed; ctx is for Open alone.
func Open(ctx context.Context, f layout.Fetcher, desc ocispec.Descriptor, opts OpenOptions) (*Source, error) {
	raw, m, err := layout.ReadManifest(ctx, f, desc)
	if err != nil {
		return nil, err
	}
	if err := checkModelArtifact(m); err != nil {
		return nil, err
	}
	members, err := withoutExtras(m)
	if err != nil {
		return nil, err
	}
	s := newSource(f, desc, opts)
	s.raw, s.imageManifest, s.manifest = raw, m, members
	if err := s.open(ctx); err != nil {
		_ = s.Close() // it holds nothing yet but what failed
		return nil, err
	}
	return s, nil
}

func (s *Source) open(ctx context.Context) error {
	if err := s.classify(); err != nil {
		return err
	}
	s.prefetch(ctx)
	found, err := s.findManifest(ctx)
	if err != nil {
		return err
	}
	if !found && s.mapped() {
		return &layout.Error{
			Object: "artifact", Kind: layout.ErrFormat,
			Msg: "has no " + carton.ManifestName + ", which every artifact of mapping " + Mapping + " has",
		}
	}
	if !found {
		if err := s.regenerate(ctx); err != nil {
			return err
		}
		return s.checkModelHash()
	}
	s.leaveUnlisted()
	if err := s.checkTitles(); err != nil {
		return err
	}
	if err := s.checkModelHash(); err != nil {
		return err
	}
	if _, ok := s.carton.Lookup(carton.InfoName); !ok {
		return errNoInfo()
	}
	return s.locate()
}

// checkModelHash wants the model that the image manifest names.
func (s *Source) checkModelHash() error {
	want, ok := s.manifest.Annotations[AnnotationModelHash]
	if got := s.carton.ModelHash(); ok && got != want {
		return &carton.Error{
			Path: carton.ManifestName, Kind: carton.ErrChecksum,
			Msg: fmt.Sprintf("got the model hash %s, want %.64q as the image manifest says", got, want),
		}
	}
	return nil
}

// checkModelArtifact decides what is a model artifact: one whose artifactType
// says so, or that has none and whose config's media type says so, or that has
// none and is an image of this mapping. A config that contradicts the
// artifactType is refused; the empty one does not.
func checkModelArtifact(m *ocispec.Manifest) error {
	var artifact, config bool
	for _, t := range families {
		artifact = artifact || m.ArtifactType == t.artifact
		config = config || m.Config.MediaType == t.config
	}
	emptyConfig := m.Config.MediaType == ocispec.MediaTypeEmptyJSON
	switch {
	case artifact && (config || emptyConfig), m.ArtifactType == "" && (config || isMappedImage(m)):
	case artifact:
		return &layout.Error{
			Object: "artifact", Kind: layout.ErrFormat,
			Msg: fmt.Sprintf("is a model, and its config has the media type %.128q", m.Config.MediaType),
		}
	default:
		return errOtherKind(m)
	}
	if n, ok := m.Annotations[AnnotationMapping]; ok && n != Mapping {
		return hint.With(&carton.Error{
			Kind: carton.ErrVersion, Msg: fmt.Sprintf("the artifact has mapping %.32q, want %s", n, Mapping),
		}, "a newer release may read it")
	}
	if len(m.Layers) == 0 {
		return &layout.Error{Object: "artifact", Kind: layout.ErrFormat, Msg: "is a model without layers"}
	}
	return nil
}
