package convert

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ImageOptions say how the image form of a stored artifact is made.
type ImageOptions struct {
	// Subject makes the image manifest refer to the artifact's.
	Subject bool
}

// ImagePlan is the image form of a stored artifact, before the digests of all
// its layers are known.
type ImagePlan struct {
	// Shared says that the image has the artifact's own tar layers; only
	// MANIFEST and carton.toml are in a layer more.
	Shared bool

	spec   imageSpec
	layers []layout.Layer
	shared []*reading // of the layers that are the artifact's, nil for others
}

// PlanImage plans the image form of an artifact. Where all but MANIFEST and
// carton.toml is in tar layers of this mapping, and they are few enough, the
// image shares them: their Vouch reads them, and there is no image before it has
// found nothing wrong. Else every member is in a new tar layer: its digest is
// known when it was read, which [ImagePlan.Learn] is told of.
//
// The image of a carton is the same whether it is made here or by [Build]
// with the artifact's options. A member that no image can hold is [ErrNoImage].
func PlanImage(ctx context.Context, src *Source, opts ImageOptions) (*ImagePlan, error) {
	whole := src.ImageManifest()
	if IsImage(whole) {
		return nil, hint.With(errors.New("is the image form of a carton already"), "name the artifact that it was made of")
	}
	build := Options{Layers: FormTar, Image: true, AllowInvalid: true}
	b, err := newBuilder(ctx, src, build)
	if err != nil {
		return nil, err
	}
	p := &ImagePlan{spec: imageSpec{info: b.info}}
	if src.mapped() {
		b.annotations = maps.Clone(whole.Annotations)
		b.annotations[AnnotationModelHash] = src.Manifest().ModelHash()                            // who reads the image asks for it
		p.spec.created, _ = time.Parse(time.RFC3339, whole.Annotations[ocispec.AnnotationCreated]) // none, if it is no time
	}
	p.spec.annotations = b.annotations
	if opts.Subject {
		desc := src.Descriptor()
		p.spec.subject = &ocispec.Descriptor{
			MediaType: desc.MediaType, ArtifactType: whole.ArtifactType, Digest: desc.Digest, Size: desc.Size,
		}
	}
	if src.mapped() && src.tarsCanBeShared() {
		p.Shared = true
		return p, p.share(ctx, src, b)
	}
	return p, p.rebuild(src, b)
}

// tarsCanBeShared reports whether the artifact's tar layers make an image:
// nothing is raw but what the image has in a layer of its own, the first.
func (s *Source) tarsCanBeShared() bool {
	tars := 0
	for i := range s.layers {
		l := &s.layers[i]
		switch {
		case l.left:
		case l.format != formatRaw:
			tars++
		case l.symlink == "" && (l.name == carton.ManifestName || l.name == carton.InfoName):
		default:
			return false
		}
	}
	return tars < maxImageLayers
}

// share takes the artifact's tar layers.
func (p *ImagePlan) share(ctx context.Context, src *Source, b *builder) error {
	head := b.head()
	byPath := newPlanner(b.members, b.info, b.opts, nil).byPath
	for i := range src.manifest.Layers {
		l := &src.layers[i]
		if l.left {
			continue
		}
		if l.format == formatRaw {
			head.manifest = head.manifest || l.name == carton.ManifestName
			if m := byPath[l.name]; m != nil {
				head.members = append(head.members, m)
			}
			continue
		}
		shared, list := src.tarLayer(i), src.manifest.Layers[i].Annotations[AnnotationMembers]
		shared.MediaType, shared.Annotations = imageTypes[l.format], nil
		if list != "" {
			shared.Annotations = map[string]string{AnnotationMembers: list}
		}
		p.layers = append(p.layers, shared)
		p.spec.diffIDs = append(p.spec.diffIDs, "")
		p.shared = append(p.shared, &src.read[i])
	}
	heads := head.before(nil)
	if err := b.learn(ctx, heads); err != nil || len(heads) == 0 {
		return err
	}
	p.layers = append([]layout.Layer{head.imageLayer(memberLists(src.Manifest(), heads)[0])}, p.layers...)
	p.spec.diffIDs = append(diffIDsOf(heads), p.spec.diffIDs...)
	p.shared = append([]*reading{nil}, p.shared...)
	return nil
}

// rebuild plans new tar layers.
func (p *ImagePlan) rebuild(src *Source, b *builder) error {
	layers, err := newPlanner(b.members, b.info, b.opts, nil).layers()
	if err == nil {
		layers, err = b.planImage(layers)
	}
	if err != nil {
		return err
	}
	for i, list := range memberLists(src.Manifest(), layers) {
		if err := layers[i].prepare(src); err != nil {
			return err
		}
		p.layers = append(p.layers, layers[i].imageLayer(list))
		p.spec.diffIDs = append(p.spec.diffIDs, "")
	}
	return nil
}

// Layers returns the image's layers in their order. Of those without a digest
// the size is known. The slice is the caller's.
func (p *ImagePlan) Layers() []layout.Layer { return slices.Clone(p.layers) }

// Learn takes the digest of a layer that was read to its end.
func (p *ImagePlan) Learn(i int, d digest.Digest) {
	p.layers[i].Digest, p.spec.diffIDs[i] = d, d
}

// Artifact makes the image. Layers whose digest nobody has learnt, and layers of
// the artifact that were not read, are an error wrapping layout.ErrFormat.
func (p *ImagePlan) Artifact() (*layout.Artifact, error) {
	spec := p.spec
	spec.diffIDs = slices.Clone(spec.diffIDs)
	for i, read := range p.shared {
		if read != nil {
			spec.diffIDs[i] = read.known()
		}
	}
	spec.layers = p.layers
	return spec.build()
}
