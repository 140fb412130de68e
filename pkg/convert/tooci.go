package convert

import (
	"context"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// ToOCI makes an artifact of a carton: layers that can be opened as often as a
// transfer needs, the config, the image manifest. src must stay open as long as
// the artifact is used.
//
// It reads carton.toml, the members that are in tar layers, and the headers of
// safetensors files.
// Headers are read by range and so unverified: a source that gives wrong ones
// for a layer that the other side has already makes a config that says something
// wrong. A linked member whose size nobody tells is read once to learn it.
//
// Errors wrap what src, carton.ReadInfo and pkg/layout return.
func ToOCI(ctx context.Context, src carton.Source, opts Options) (*layout.Artifact, error) {
	art, _, err := Build(ctx, src, opts)
	return art, err
}

// Build is [ToOCI] that also tells what each layer holds, as [Plan] does.
func Build(ctx context.Context, src carton.Source, opts Options) (*layout.Artifact, []PlannedLayer, error) {
	forms, err := buildForms(ctx, src, opts, false)
	if err != nil {
		return nil, nil, err
	}
	return forms.Artifact, forms.Layers, nil
}

// PlannedLayer is a layer of an artifact that was not made yet.
type PlannedLayer struct {
	// Name is a member's path, or the name of a tar layer.
	Name string
	// MediaType is the layer's media type.
	MediaType string
	// Paths are the members that the layer holds, "MANIFEST" among them; of an
	// extra layer its name.
	Paths []string
	// Extra says that the layer is a copy for the page of a registry, no member.
	Extra bool
	// Size is the layer's size in bytes, before compression.
	Size int64
}

// Plan returns the layers that [ToOCI] would make of a carton, in their order,
// without reading any content but carton.toml and the sizes that ToOCI too has to
// learn.
func Plan(ctx context.Context, src carton.Source, opts Options) ([]PlannedLayer, error) {
	b, err := newBuilder(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	plan, err := b.plan()
	if err != nil {
		return nil, err
	}
	if b.opts.Compat == CompatImage {
		if plan, err = b.planImage(plan); err != nil {
			return nil, err
		}
		return b.plannedImage(plan)
	}
	return plannedLayers(src, plan, b.opts)
}

// plannedLayers tells what the layers of a plan hold.
func plannedLayers(src carton.Source, plan []planned, opts Options) ([]PlannedLayer, error) {
	var layers []PlannedLayer
	for i := range plan {
		l := &plan[i]
		out := PlannedLayer{Name: l.name, MediaType: families[opts.MediaTypes].of(l.category, l.format)}
		if l.manifest {
			out.Paths, out.Size = []string{carton.ManifestName}, src.Manifest().Len()
		}
		if l.extra != nil {
			out.Paths, out.Size, out.Extra = []string{l.name}, l.extra.size, true
		}
		for _, m := range l.members {
			out.Paths = append(out.Paths, m.Path)
			out.Size = m.Size
		}
		if l.format != formatRaw {
			b, err := newBundle(src, l)
			if err != nil {
				return nil, err
			}
			out.Size = b.tar.Size()
		}
		layers = append(layers, out)
	}
	return layers, nil
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

func measure(ctx context.Context, src carton.Source, path string) (int64, error) {
	r, err := src.Open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, r)
}

// rawLayer makes a layer of one member's bytes, of MANIFEST's, or of an extra's.
func rawLayer(src carton.Source, l *planned, metadata string, layer *layout.Layer) {
	switch {
	case l.extra != nil:
		layer.Digest = digest.NewDigestFromEncoded(digest.SHA256, l.extra.hash)
		layer.Size, layer.Open = l.extra.size, l.extra.open
		layer.Annotations[AnnotationExtra] = "true"
	case l.manifest:
		m := src.Manifest()
		layer.Digest = digest.NewDigestFromEncoded(digest.SHA256, m.ModelHash())
		layer.Size, layer.Open = m.Len(), bytesOpener(m.Bytes())
	default:
		m := l.members[0]
		layer.Digest = digest.NewDigestFromEncoded(digest.SHA256, m.Hash)
		layer.Size = m.Size
		layer.Open = func(ctx context.Context, off int64) (io.ReadCloser, error) {
			return openFrom(ctx, src, m.Path, off)
		}
		if m.Ranged {
			layer.OpenRange = func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
				return src.OpenRange(ctx, m.Path, off, n)
			}
			layer.CheckRanges = func(ctx context.Context, crc uint32) error {
				return checkRanges(ctx, src, m.Path, crc)
			}
			layer.Check = func(ctx context.Context) error {
				_, err := measure(ctx, src, m.Path)
				return err
			}
		}
		// A store hashes what it is given, and this layer's digest is the member's
		// hash. Bytes that lie here as they are would be hashed twice.
		if m.Ranged && (m.Place == carton.PlaceStored || m.Place == carton.PlaceFile) {
			layer.Open = func(ctx context.Context, off int64) (io.ReadCloser, error) {
				r, err := src.OpenRange(ctx, m.Path, off, -1)
				if err != nil || off > 0 {
					return r, err
				}
				return &wholeRange{ReadCloser: r, check: func(crc uint32) error { return checkRanges(ctx, src, m.Path, crc) }}, nil
			}
		}
		if m.Target != "" {
			layer.Annotations[AnnotationSymlink] = m.Target
		}
	}
	layer.Annotations[metadata] = metadataOf(l.name, layer.Size)
}

// memberLists returns the run.carton.members annotation of each layer, "" for
// none.
func memberLists(m *carton.Manifest, plan []planned) []string {
	lists := make([]string, len(plan))
	total := 0
	for i := range plan {
		l := &plan[i]
		if l.format == formatRaw || l.links {
			continue
		}
		items := make([]sizedLine, 0, len(l.members)+1)
		if l.manifest { // only carton.toml can follow, and it does
			items = append(items, sizedLine{line: manifestLine, size: m.Len()})
		}
		for _, member := range l.members {
			e, _ := m.Lookup(member.Path)
			items = append(items, sizedLine{line: e.Line, size: member.Size})
		}
		lists[i] = encodeMembers(items)
		total += len(lists[i])
	}
	if total > maxMembersBytes {
		clear(lists)
	}
	return lists
}

// configLayer makes the config blob.
func configLayer(types mediaTypes, c ModelConfig) layout.Layer {
	b := marshal(c)
	return layout.Layer{
		Descriptor: ocispec.Descriptor{MediaType: types.config, Digest: digest.FromBytes(b), Size: int64(len(b))},
		Name:       "config",
		Open:       bytesOpener(b),
	}
}
