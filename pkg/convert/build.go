package convert

import (
	"context"
	"fmt"
	"sync"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// builder makes artifacts of one carton. What it read for one of them it knows
// for the next.
type builder struct {
	src         carton.Source
	opts        Options
	info        *carton.Info
	annotations map[string]string // of image manifests
	members     []carton.Member   // with their sizes
	extras      []extra
	notes       []inspect.Note // what is wrong with the weights

	mu      sync.Mutex
	bundles map[string]bundleDigest // by key
}

// newBuilder reads what all artifacts of a carton need: carton.toml, and sizes
// that nobody tells.
func newBuilder(ctx context.Context, src carton.Source, opts Options) (*builder, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &builder{src: src, opts: opts, bundles: map[string]bundleDigest{}}
	if b.info, err = readInfo(ctx, src, opts.AllowInvalidInfo); err != nil {
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
		if b.extras, err = findExtras(src, b.info, b.members); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// plan cuts the carton into the layers of the artifact.
func (b *builder) plan() ([]planned, error) {
	p := newPlanner(b.members, rolesOf(b.info), b.opts)
	p.extras = b.extras
	return p.layers()
}

// built are the layers of an artifact.
type built struct {
	plan    []planned
	layers  []layout.Layer
	diffIDs []digest.Digest // of each layer without compression
}

// bundlesInParallel is how many bundles are read at once to learn their digests.
const bundlesInParallel = 4

// build makes the layers of a plan.
func (b *builder) build(ctx context.Context, plan []planned) (*built, error) {
	types := families[b.opts.MediaTypes]
	lists := memberLists(b.src.Manifest(), plan)
	out := &built{plan: plan, layers: make([]layout.Layer, len(plan)), diffIDs: make([]digest.Digest, len(plan))}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bundlesInParallel)
	for i := range plan {
		l, layer := &plan[i], &out.layers[i]
		layer.Name, layer.MediaType, layer.Annotations = l.name, types.of(l.category, l.format), namedAs(l.name)
		if l.format == formatRaw {
			rawLayer(b.src, l, types.metadata, layer)
			out.diffIDs[i] = layer.Digest
			continue
		}
		if lists[i] != "" {
			layer.Annotations[AnnotationMembers] = lists[i]
		}
		group.Go(func() error {
			tar, err := newBundle(b.src, l)
			if err != nil {
				return err
			}
			d, err := b.digest(ctx, tar)
			if err != nil {
				return fmt.Errorf("bundle %s: %w", l.name, err)
			}
			layer.Digest, layer.Size, layer.Open, out.diffIDs[i] = d.Digest, d.Size, tar.Open, d.DiffID
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	origins := originsOf(b.src, b.opts.LinkOrigins)
	for i := range out.layers {
		out.layers[i].Origins = origins(out.layers[i].Digest)
	}
	return out, nil
}

// digest reads a bundle to learn its digest, unless that is known.
func (b *builder) digest(ctx context.Context, tar *bundle) (bundleDigest, error) {
	b.mu.Lock()
	d, ok := b.bundles[tar.key]
	b.mu.Unlock()
	if ok {
		return d, nil
	}
	d, err := tar.digest(ctx)
	if err != nil {
		return d, err
	}
	b.mu.Lock()
	b.bundles[tar.key] = d
	b.mu.Unlock()
	return d, nil
}

// artifact makes the artifact of its layers.
func (b *builder) artifact(ctx context.Context, parts *built) (*layout.Artifact, error) {
	types := families[b.opts.MediaTypes]
	spec := layout.ArtifactSpec{ArtifactType: types.artifact, Layers: parts.layers, Annotations: b.annotations}
	if b.opts.Compat == CompatImageConfig {
		spec.ArtifactType, spec.Config = "", b.imageConfig(parts.diffIDs)
		return layout.NewArtifact(spec)
	}
	details, notes, err := describe(ctx, b.src, b.members)
	if err != nil {
		return nil, err
	}
	b.notes = notes
	spec.Config = configLayer(types, newConfig(b.info, details, parts.diffIDs, b.opts))
	return layout.NewArtifact(spec)
}
