package convert

import (
	"cmp"
	"fmt"
	"path"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// sourceLayer is what a layer's descriptor says.
type sourceLayer struct {
	name     string // of a raw layer's member
	format   format
	list     []sizedLine // of a tar layer, nil where it has none
	symlink  string      // of a raw layer, "" where it is none
	unlisted bool        // MANIFEST lists nothing of it: it is no member's

	tar     *expectedTar       // of a tar layer of the mapping: what it must be
	diffID  digest.Digest      // of a compressed tar layer that was looked into
	scanned bool               // of a tar layer: it was looked into
	entries []layout.TarHeader // the files and symlinks that were found there
	checked checkedTar         // of a tar layer: whether it may be published
}

// classify reads the descriptors of all layers, before any blob is read.
func (s *Source) classify() error {
	s.layers = make([]sourceLayer, len(s.manifest.Layers))
	for i, desc := range s.manifest.Layers {
		l := &s.layers[i]
		var ok bool
		if _, l.format, ok = parseMediaType(desc.MediaType); !ok && isMappedImage(s.manifest) {
			l.format, ok = parseImageType(desc.MediaType)
		}
		if !ok {
			return &layout.Error{
				Object: desc.Digest.String(), Kind: layout.ErrFormat,
				Msg: fmt.Sprintf("is a layer of the unknown type %.128q", desc.MediaType),
			}
		}
		if err := l.read(desc, s.mapped()); err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return nil
}

// read reads a layer's annotations. Only a layer of a known mapping can have a
// list of members.
func (l *sourceLayer) read(desc ocispec.Descriptor, mapped bool) (err error) {
	if l.format != formatRaw {
		if list, ok := desc.Annotations[AnnotationMembers]; ok && mapped {
			if l.list, err = parseMembers(list); err != nil {
				return fmt.Errorf("%s: %w", AnnotationMembers, err)
			}
		}
		return nil
	}
	if l.name, err = layerName(desc.Annotations); err != nil {
		if l.name = runnerName(path.Ext(desc.MediaType)); l.name == "" {
			return err
		}
	}
	if err := carton.CheckPath(l.name); err != nil {
		return err
	}
	if target, ok := desc.Annotations[AnnotationSymlink]; ok {
		if target == "" {
			return &carton.Error{Path: l.name, Kind: carton.ErrFormat, Msg: AnnotationSymlink + " is empty"}
		}
		l.symlink = target
	}
	return nil
}

// layerName returns the path of a raw layer's member: the two filepath keys must
// agree where both are there; the title is taken where neither is.
func layerName(annotations map[string]string) (string, error) {
	cnai, cncf := annotations[filepathCNAI], annotations[filepathCNCF]
	if cnai != "" && cncf != "" && cnai != cncf {
		return "", &carton.Error{
			Path: cnai, Kind: carton.ErrFormat,
			Msg: fmt.Sprintf("%s and %s differ: got %.128q in the second", filepathCNAI, filepathCNCF, cncf),
		}
	}
	if name := cmp.Or(cnai, cncf, annotations[ocispec.AnnotationTitle]); name != "" {
		return name, nil
	}
	return "", &layout.Error{
		Object: "layer", Kind: layout.ErrFormat,
		Msg: fmt.Sprintf("has no name: want the annotation %s, %s or %s", filepathCNAI, filepathCNCF,
			ocispec.AnnotationTitle),
	}
}

// checkTitles wants the title of each raw layer to agree with its path: in an
// artifact with a MANIFEST tools that read one or the other must see one model.
// Other tools write base names there, or prose.
func (s *Source) checkTitles() error {
	for i, desc := range s.manifest.Layers {
		title, name := desc.Annotations[ocispec.AnnotationTitle], s.layers[i].name
		if s.layers[i].format == formatRaw && !s.layers[i].unlisted && title != "" && title != name {
			return &carton.Error{
				Path: name, Kind: carton.ErrFormat,
				Msg: fmt.Sprintf("the layer's title differs from its path: got %.128q", title),
			}
		}
	}
	return nil
}
