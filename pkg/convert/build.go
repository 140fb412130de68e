package convert

import (
	"context"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// Forms are the artifact of a carton, and the image form beside it.
type Forms struct {
	Artifact *layout.Artifact
	// Paths are what each layer of the artifact holds: members, "MANIFEST" among them;
	// of a layer that is no member its name.
	Paths [][]string
	// Image is an OCI image that unpacks to the carton; nil where none was asked for.
	Image *layout.Artifact
	// Shared says that the image has the artifact's own tar layers; only what is raw
	// in the artifact, MANIFEST and carton.toml, is in a layer more.
	Shared bool
	// Notes say what is wrong with the weights, which are pushed as they are.
	Notes []inspect.Note
}

// Build makes the artifact of a carton, and its image form where opts ask for one:
// layers that can be opened as often as a transfer needs, the config, the image
// manifest. src must stay open as long as they are used.
//
// It reads carton.toml, the members that are in tar layers, and the headers of
// safetensors files. Headers are read by range and so unverified: a source that
// gives wrong ones for a layer that the other side has already makes a config that
// says something wrong. A linked member whose size nobody tells is read once to
// learn it.
//
// Of an artifact with FormTar the image form shares every tar layer; MANIFEST and
// carton.toml, which are raw there, are one small tar more. Of one with FormRaw the
// image has all its layers for itself. A member that no image can hold is
// [ErrNoImage]. With CompatImage the artifact is the image form, and there is no
// other.
//
// Errors wrap what src, carton.ReadInfo and pkg/layout return.
func Build(ctx context.Context, src carton.Source, opts Options) (*Forms, error) {
	b, err := newBuilder(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	layers, err := newPlanner(b.members, b.info, b.opts, b.extras).layers()
	if err != nil {
		return nil, err
	}
	var imageLayers []*layer
	if b.opts.Image {
		if imageLayers, err = b.planImage(layers); err != nil { // before anything is read
			return nil, err
		}
	}
	forms := &Forms{Shared: b.opts.Layers != FormRaw}
	if b.opts.Compat == CompatImage {
		forms.Artifact, err = b.image(ctx, imageLayers, nil)
		forms.Paths = pathsOf(imageLayers)
		return forms, err
	}
	if forms.Artifact, forms.Notes, err = b.artifact(ctx, layers); err != nil {
		return nil, err
	}
	forms.Paths = pathsOf(layers)
	if b.opts.Image {
		forms.Image, err = b.image(ctx, imageLayers, forms.Artifact)
	}
	return forms, err
}

func pathsOf(layers []*layer) [][]string {
	var paths [][]string
	for _, l := range layers {
		paths = append(paths, l.paths())
	}
	return paths
}

// builder makes the forms of one carton.
type builder struct {
	src         carton.Source
	opts        Options
	info        *carton.Info
	annotations map[string]string // of image manifests
	members     []carton.Member   // with their sizes
	extras      []*layer
}

// newBuilder reads what all artifacts of a carton need: carton.toml, and sizes
// that nobody tells.
func newBuilder(ctx context.Context, src carton.Source, opts Options) (*builder, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &builder{src: src, opts: opts}
	if b.info, err = readInfo(ctx, src, opts.AllowInvalid); err != nil {
		return nil, err
	}
	if b.annotations, err = manifestAnnotations(b.info, src.Manifest().ModelHash(), opts); err != nil {
		return nil, err
	}
	if b.members, err = sizedMembers(ctx, src); err != nil {
		return nil, err
	}
	if opts.Image {
		if err := checkImageMembers(b.members); err != nil {
			return nil, err
		}
	}
	if opts.Readme {
		b.extras, err = findExtras(src, b.info, b.members)
	}
	return b, err
}

// tarsInParallel is how many tar layers are read at once to learn their digests.
const tarsInParallel = 4

// learn reads the tar layers whose digests are not known.
func (b *builder) learn(ctx context.Context, layers []*layer) error {
	for _, l := range layers {
		if err := l.prepare(b.src); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(tarsInParallel)
	for _, l := range layers {
		group.Go(func() error {
			if err := l.learn(ctx); err != nil {
				return fmt.Errorf("bundle %s: %w", l.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// artifact makes the artifact of its layers.
func (b *builder) artifact(ctx context.Context, layers []*layer) (*layout.Artifact, []inspect.Note, error) {
	if err := b.learn(ctx, layers); err != nil {
		return nil, nil, err
	}
	types := families[b.opts.MediaTypes]
	spec := layout.ArtifactSpec{ArtifactType: types.artifact, Annotations: b.annotations}
	origins := originsOf(b.src, b.opts.LinkOrigins)
	lists := memberLists(b.src.Manifest(), layers)
	for i, l := range layers {
		out := l.inArtifact(b.src, types, lists[i])
		out.Origins = origins(l.digest)
		spec.Layers = append(spec.Layers, out)
	}
	if b.opts.Compat == CompatImageConfig {
		spec.ArtifactType, spec.Config = "", imageConfig(b.info, b.opts.Created, diffIDsOf(layers))
		art, err := layout.NewArtifact(spec)
		return art, nil, err
	}
	details, notes, err := describe(ctx, b.src, b.members)
	if err != nil {
		return nil, nil, err
	}
	spec.Config = configLayer("config", types.config, newConfig(b.info, details, diffIDsOf(layers), b.opts))
	art, err := layout.NewArtifact(spec)
	return art, notes, err
}

func diffIDsOf(layers []*layer) []digest.Digest {
	var ids []digest.Digest
	for _, l := range layers {
		ids = append(ids, l.diffID)
	}
	return ids
}

// configLayer makes a config blob.
func configLayer(name, mediaType string, config any) layout.Layer {
	b := marshal(config)
	return layout.Layer{
		Descriptor: ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))},
		Name:       name,
		Open:       layout.OpenBytes(b),
	}
}

// readInfo reads carton.toml. That its bytes have their hash is never forgiven.
func readInfo(ctx context.Context, src carton.Source, allowInvalid bool) (*carton.Info, error) {
	if _, ok := src.Manifest().Lookup(carton.InfoName); !ok {
		return nil, errNoInfo()
	}
	b, err := carton.ReadMember(ctx, src, carton.InfoName, carton.MaxInfoBytes)
	if err != nil {
		return nil, err
	}
	info, err := carton.ParseInfo(b)
	if err != nil && allowInvalid {
		return carton.ParseInfoLoosely(b), nil
	}
	return info, err
}

// errNoInfo is what a MANIFEST without carton.toml is refused with, both ways.
func errNoInfo() error {
	return &carton.Error{Path: carton.ManifestName, Kind: carton.ErrFormat, Msg: "lists no " + carton.InfoName}
}

// sizedMembers returns the members with the size of each: one that the source
// does not tell is learnt by reading the member, verified, to its end.
func sizedMembers(ctx context.Context, src carton.Source) ([]carton.Member, error) {
	members, err := src.Members(ctx)
	if err == nil {
		err = src.Sizes(ctx, members)
	}
	if err != nil {
		return nil, err
	}
	known := map[string]int64{}
	for i := range members {
		m := &members[i]
		if size, ok := known[m.Hash]; ok && m.Size < 0 {
			m.Size = size
		}
		if m.Size < 0 {
			if m.Size, err = measure(ctx, src, m.Path); err != nil {
				return nil, err
			}
		}
		known[m.Hash] = m.Size
	}
	return members, nil
}

// measure reads a member, verified, and returns its size.
func measure(ctx context.Context, src carton.Source, path string) (int64, error) {
	r, err := src.Open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, r)
}

// memberCheck returns what reads a member, verified, to say what is wrong with it.
func memberCheck(src carton.Source, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := measure(ctx, src, path)
		return err
	}
}
