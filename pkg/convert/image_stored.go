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

// Image makes the image form of an artifact that is stored, and of Forms nothing else;
// of opts ImageSubject alone counts. Where all but MANIFEST and carton.toml is in tar
// layers of this mapping, and they are few enough, the image shares them: their Vouch
// reads them, and there is no image before it has found nothing wrong. Else every
// member is in a new tar layer, whose digest is known when it was read. Either way the
// image is not complete (layout.Artifact): a push reads what it needs, once.
//
// The image of a carton is the same whether it is made here or by [Build] with the
// artifact's options. A member that no image can hold is [ErrNoImage].
func Image(ctx context.Context, src *Source, opts Options) (*Forms, error) {
	whole := src.imageManifest
	if IsImage(whole) {
		err := errors.New("is the image form of a carton already")
		return nil, hint.With(err, "name the artifact that it was made of")
	}
	b, err := newBuilder(ctx, src, Options{Layers: FormTar, Image: true, AllowInvalid: true})
	if err != nil {
		return nil, err
	}
	spec := &imageSpec{info: b.info, annotations: b.annotations}
	if src.mapped() {
		spec.annotations = maps.Clone(whole.Annotations)
		spec.annotations[AnnotationModelHash] = src.Manifest().ModelHash() // who reads the image asks for it
		// None, if it is no time.
		spec.created, _ = time.Parse(time.RFC3339, whole.Annotations[ocispec.AnnotationCreated])
	}
	if opts.ImageSubject {
		desc := src.Descriptor()
		spec.subject = &ocispec.Descriptor{
			MediaType: desc.MediaType, ArtifactType: whole.ArtifactType, Digest: desc.Digest, Size: desc.Size,
		}
	}
	forms := &Forms{Shared: src.mapped() && src.tarsCanBeShared()}
	if forms.Shared {
		err = spec.share(ctx, src, b)
	} else {
		err = spec.rebuild(b)
	}
	forms.Image = spec.unread()
	return forms, err
}

// tarsCanBeShared reports whether the artifact's tar layers make an image:
// nothing is raw but what the image has in a layer of its own, the first.
func (s *Source) tarsCanBeShared() bool {
	tars := 0
	for i := range s.layers {
		l := &s.layers[i]
		switch {
		case l.unlisted:
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
func (s *imageSpec) share(ctx context.Context, src *Source, b *builder) error {
	head := b.head()
	for i, desc := range src.manifest.Layers {
		l := &src.layers[i]
		switch {
		case l.unlisted:
		case l.format != formatRaw:
			tar := inImage(src.tarLayer(i), l.format, desc.Annotations[AnnotationMembers])
			s.layers = append(s.layers, imageLayer{Layer: tar, checked: &l.checked})
		case l.name == carton.ManifestName:
			head.manifest = true
		default:
			at := slices.IndexFunc(b.members, func(m carton.Member) bool { return m.Path == l.name })
			head.members = append(head.members, &b.members[at])
		}
	}
	heads := head.before(nil)
	if err := b.learn(ctx, heads); err != nil || len(heads) == 0 {
		return err
	}
	first := imageLayer{Layer: head.inImage(memberLists(src.Manifest(), heads)[0]), diffID: head.diffID}
	s.layers = append([]imageLayer{first}, s.layers...)
	return nil
}

// rebuild plans new tar layers.
func (s *imageSpec) rebuild(b *builder) error {
	layers, err := newPlanner(b.members, b.info, b.opts, nil).layers()
	if err == nil {
		layers, err = b.planImage(layers)
	}
	if err != nil {
		return err
	}
	for i, list := range memberLists(b.src.Manifest(), layers) {
		if err := layers[i].prepare(b.src); err != nil {
			return err
		}
		s.layers = append(s.layers, imageLayer{Layer: layers[i].inImage(list)})
	}
	return nil
}

// unread makes the image as far as it is known before its layers were read.
func (s *imageSpec) unread() *layout.Artifact {
	a := &layout.Artifact{}
	for _, l := range s.layers {
		a.Layers = append(a.Layers, l.Layer)
	}
	a.Complete = func(learned []digest.Digest) (*layout.Artifact, error) {
		image := *s
		image.layers = slices.Clone(s.layers)
		for i := range image.layers {
			l := &image.layers[i]
			switch {
			case l.Digest == "" && len(learned) > 0:
				l.Digest, l.diffID, learned = learned[0], learned[0], learned[1:]
			case l.checked != nil:
				l.diffID = l.checked.known()
			}
		}
		return image.build()
	}
	return a
}
