package convert

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Copy returns the artifact that src was opened of, to be stored elsewhere as it
// is: the same image manifest, config and layers; and the image form that [Image]
// makes of it, where opts ask for one. Nothing else of opts counts. src must stay open
// as long as they are used.
//
// What is published so was checked. A raw layer is the member that MANIFEST
// lists, by its digest. A tar layer is read whole: on its way to the other place,
// or by itself where that has it (Vouch of layout.Layer). What the config of an
// artifact of the mapping says of its layers is compared, and its extras are
// copies of members or of the model_description. All else that the config and
// annotations say is as it was.
//
// A carton that is more than its artifact can't be copied: see [Source.Wrapped].
func Copy(ctx context.Context, src *Source, opts Options) (*Forms, error) {
	if err := src.scanTars(ctx); err != nil {
		return nil, err
	}
	config, err := layout.ReadBlob(ctx, src.fetcher, src.imageManifest.Config, layout.MaxConfigBytes)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c := &copying{src: src, members: src.pathsByLayer()}
	if err := c.readConfig(config); err != nil {
		return nil, err
	}
	if err := c.readExtras(ctx); err != nil {
		return nil, err
	}
	art := &layout.Artifact{Descriptor: src.desc, Manifest: src.raw}
	art.Config = src.blobLayer(src.imageManifest.Config, "config")
	art.ArtifactType, art.Config.Open = src.imageManifest.ArtifactType, layout.OpenBytes(config)
	forms := &Forms{Artifact: art}
	for i := range src.imageManifest.Layers {
		layer, paths, err := c.next(i)
		if err != nil {
			return nil, err
		}
		art.Layers, forms.Paths = append(art.Layers, layer), append(forms.Paths, paths)
	}
	if !opts.Image {
		return forms, nil
	}
	image, err := Image(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	forms.Image, forms.Shared = image.Image, image.Shared
	return forms, nil
}

// copying is the making of one copy.
type copying struct {
	src     *Source
	diffIDs []digest.Digest // of all layers, as the config says; nil where that says nothing
	extras  map[digest.Digest]bool
	members [][]string // the paths of each layer that is no extra
	layers  int        // layers that are no extras, so far
}

// readConfig learns what the config says of the layers.
func (c *copying) readConfig(config []byte) error {
	if !c.src.mapped() || c.src.imageManifest.Config.MediaType == ocispec.MediaTypeEmptyJSON {
		return nil
	}
	if c.src.imageManifest.Config.MediaType == ocispec.MediaTypeImageConfig {
		var image imageConfigJSON
		if err := json.Unmarshal(config, &image); err != nil {
			return fmt.Errorf("config: %w: %w", layout.ErrFormat, err)
		}
		c.diffIDs = image.RootFS.DiffIDs
	} else {
		model, err := ParseModelConfig(config)
		if err != nil {
			return err
		}
		c.diffIDs = model.ModelFS.DiffIDs
	}
	if n := len(c.diffIDs); n > 0 && n != len(c.src.imageManifest.Layers) {
		return &layout.Error{
			Object: "config", Kind: layout.ErrFormat,
			Msg: fmt.Sprintf("names %d layers, the image manifest %d", n, len(c.src.imageManifest.Layers)),
		}
	}
	return nil
}

// readExtras learns what layers may hold that are no member's.
func (c *copying) readExtras(ctx context.Context) error {
	if c.src.imageManifest == c.src.manifest { // there are none
		return nil
	}
	info, err := readInfo(ctx, c.src, true)
	if err != nil {
		return err
	}
	c.extras = map[digest.Digest]bool{digest.FromString(info.ModelDescription): true}
	for _, e := range c.src.carton.Entries() {
		c.extras[digestOf(e.Hash)] = true
	}
	return nil
}

// next makes the i-th layer of the image manifest, and says what it holds.
func (c *copying) next(i int) (layout.Layer, []string, error) {
	desc := c.src.imageManifest.Layers[i]
	name := desc.Annotations[ocispec.AnnotationTitle]
	if c.src.mapped() && desc.Annotations[AnnotationExtra] != "" {
		if !c.extras[desc.Digest] {
			return layout.Layer{}, nil, &layout.Error{
				Object: desc.Digest.String(), Kind: layout.ErrFormat,
				Msg: "has the annotation " + AnnotationExtra + ", but is no copy of anything that the carton holds",
			}
		}
		return c.src.blobLayer(desc, name), []string{name}, c.checkDiffID(i, desc.Digest)
	}
	n := c.layers
	c.layers++
	if c.src.layers[n].unlisted {
		name = c.src.nameOf(n)
		return c.src.blobLayer(desc, name), []string{name}, c.src.checkLeft(n)
	}
	if c.src.layers[n].format == formatRaw {
		return c.src.rawLayer(n), c.members[n], c.checkDiffID(i, desc.Digest)
	}
	l := c.src.tarLayer(n)
	vouch := l.Vouch
	l.Vouch = func(ctx context.Context, near layout.Fetcher, moved func(off int64)) error {
		if err := vouch(ctx, near, moved); err != nil {
			return err
		}
		return c.checkDiffID(i, c.src.layers[n].checked.known())
	}
	return l, c.members[n], nil
}

// checkLeft refuses to publish a tar that nobody vouches for: other programs
// unpack it without asking MANIFEST. A file is published as it is.
func (s *Source) checkLeft(i int) error {
	if s.layers[i].format == formatRaw {
		return nil
	}
	err := s.inLayer(i, &layout.Error{
		Object: s.nameOf(i), Kind: layout.ErrFormat,
		Msg: "is a tar that MANIFEST lists nothing of, and is not published unchecked",
	})
	return hint.With(err, "crane copy copies an artifact without looking into it; %s or another option of form "+
		"makes a new artifact of the carton alone", hint.Layers)
}

// checkDiffID compares the digest of a layer without compression with what the
// config says: runtimes compare it too, when they unpack an image.
func (c *copying) checkDiffID(i int, got digest.Digest) error {
	if len(c.diffIDs) == 0 || c.diffIDs[i] == got {
		return nil
	}
	return &layout.Error{
		Object: "config", Kind: layout.ErrDigest,
		Msg: fmt.Sprintf("layer %d is %s without compression, the config says %.80q", i+1, got, c.diffIDs[i]),
	}
}

// Wrapped reports whether the carton has members that its artifact has not,
// because OpenOptions.Wrap made a carton of it.
func (s *Source) Wrapped() bool { return s.generated[carton.InfoName] != nil }

// blobLayer gives a blob of the artifact to another place.
func (s *Source) blobLayer(desc ocispec.Descriptor, name string) layout.Layer {
	l := layout.Layer{Descriptor: desc, Name: name}
	l.Open = func(ctx context.Context, off int64) (io.ReadCloser, error) { return s.openDesc(ctx, desc, off, -1) }
	l.OpenRange = func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
		return s.openDesc(ctx, desc, off,
			n)
	}
	if s.opts.Origin != (layout.Origin{}) {
		l.Origins = []layout.Origin{s.opts.Origin}
	}
	return l
}

// rawLayer gives a raw layer to another place.
func (s *Source) rawLayer(i int) layout.Layer {
	path := s.layers[i].name
	l := s.blobLayer(s.manifest.Layers[i], path)
	l.Check = memberCheck(s, path)
	return l
}

// tarLayer gives a tar layer to another place, or to an image: nobody publishes
// it unread.
func (s *Source) tarLayer(i int) layout.Layer {
	desc := s.manifest.Layers[i]
	l := s.blobLayer(desc, cmp.Or(desc.Annotations[ocispec.AnnotationTitle], desc.Digest.String()))
	l.Open = func(ctx context.Context, off int64) (io.ReadCloser, error) { return s.openVerifying(ctx, i, off) }
	l.Vouch = func(ctx context.Context, near layout.Fetcher, moved func(off int64)) error {
		return s.vouch(ctx, i, near, moved)
	}
	l.Check = func(ctx context.Context) error { return s.vouch(ctx, i, nil, nil) }
	return l
}

// pathsByLayer returns the paths of the members that each layer holds, MANIFEST
// first.
func (s *Source) pathsByLayer() [][]string {
	paths := make([][]string, len(s.layers))
	for i := range paths {
		paths[i] = []string{}
	}
	if s.manifestSeen {
		paths[s.manifestLayer] = append(paths[s.manifestLayer], carton.ManifestName)
	}
	for _, m := range s.members {
		if p := s.places[m.Path]; p.layer >= 0 {
			paths[p.layer] = append(paths[p.layer], m.Path)
		}
	}
	return paths
}
