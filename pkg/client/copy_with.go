package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

const (
	// maxWith is how many manifests go along with a copy at most.
	maxWith = 1000
	// maxDepth is how far what goes along may be from what is copied: a signature of an
	// attestation of a member of an index is at 3.
	maxDepth = 8
	// maxLies is how much of what is listed with a manifest, and does not belong to it, is
	// named: a list may have ten thousand such entries.
	maxLies = 10
)

// cosignTags are what follows a digest in the tags that cosign keeps signatures,
// attestations and SBOMs under, where it does not make them referrers.
// https://github.com/sigstore/cosign/blob/v2.4.1/specs/SIGNATURE_SPEC.md#tag-based-discovery
var cosignTags = []string{".sig", ".att", ".sbom"}

// companion is a manifest that goes along with a copy.
type companion struct {
	*layout.Artifact
	kind    string // as CopiedWith has it
	subject digest.Digest
	tags    []string
	first   bool // it is listed by the index that is copied
}

func (c *companion) result() CopiedWith {
	return CopiedWith{
		Kind: c.kind, Digest: c.Digest, MediaType: c.MediaType, ArtifactType: c.ArtifactType, Size: c.Size,
		Subject: c.subject, Tags: c.tags,
	}
}

// gather finds what goes along: what an index lists always, all else where it was
// asked for.
func (c *copying) gather(ctx context.Context, root *content) error {
	g := &gathering{copying: c, seen: map[digest.Digest]bool{root.Digest: true}}
	if err := g.entries(ctx, root, 0, true); err != nil {
		return err
	}
	if !c.opts.Recursive {
		return nil
	}
	if err := g.listTags(ctx); err != nil {
		return err
	}
	if !c.opts.LeaveImage {
		if err := g.imageForm(ctx); err != nil {
			return err
		}
	}
	g.next = append(g.next, root.Descriptor)
	for depth := 0; len(g.next) > 0; depth++ {
		if depth > maxDepth {
			return limitError("what belongs to %s refers to each other over more than %d steps", root.Digest, maxDepth)
		}
		subjects := g.next
		g.next = nil
		for _, subject := range subjects {
			if err := g.about(ctx, subject); err != nil {
				return err
			}
		}
	}
	return g.keepSignatures(ctx)
}

func limitError(format string, args ...any) error {
	return &layout.Error{Kind: layout.ErrLimit, Msg: fmt.Sprintf(format, args...)}
}

// gathering is the search for what goes along.
type gathering struct {
	*copying
	seen  map[digest.Digest]bool
	next  []ocispec.Descriptor // of which nobody has looked yet what refers to them
	local map[string]bool      // the tags of a source that is on this machine, else nil
}

// listTags lists the tags of a source that is on this machine: to ask for each would
// be to read its index as often.
func (g *gathering) listTags(ctx context.Context) error {
	if !g.source.store.Local() {
		return nil
	}
	g.local = map[string]bool{}
	for tag, err := range g.source.store.Tags(ctx) {
		if err != nil {
			return err
		}
		g.local[tag] = true
	}
	return nil
}

// imageForm takes along the image form of the model, under the tags that it has
// where the copy goes. Its MANIFEST is the artifact's; what else it says, and who may
// mount it believes, is its own, so that where a signature is wanted it needs one too.
func (g *gathering) imageForm(ctx context.Context) error {
	src, _ := g.src.(*convert.Source)
	tag := cmp.Or(g.opts.ImageTag, g.source.loc.Tag+imageSuffix)
	if src == nil || tag == imageSuffix {
		return nil
	}
	is, err := lookUp(ctx, g.source.store, tag)
	if err != nil {
		return err
	}
	switch {
	case is == nil && g.opts.ImageTag != "":
		return &layout.Error{
			Object: "tag " + tag, Kind: layout.ErrNotFound,
			Msg: "is not there, and was to be the image form",
		}
	case is == nil, !is.image && g.opts.ImageTag == "", is.digest == src.Descriptor().Digest:
		return nil
	case !is.image || is.model != src.Manifest().ModelHash():
		g.warnings = append(g.warnings, tag+" is not the image form of this model, and does not go along")
		return nil
	}
	desc, raw, err := g.source.store.ResolveManifest(ctx, is.digest.String())
	if err != nil {
		return err
	}
	what, err := g.what(ctx, desc, raw, is.model)
	if err == nil {
		err = g.askPolicy(ctx, what)
	}
	if isRefusal(err) && g.opts.ImageTag == "" {
		g.warnings = append(g.warnings, fmt.Sprintf("%s does not go along: %v", tag, err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("image form: %w", err)
	}
	art, err := what.artifact(ctx)
	if err != nil {
		return fmt.Errorf("image form: %w", err)
	}
	g.seen[desc.Digest] = true
	g.next = append(g.next, desc)
	if len(g.tags) == 0 && g.opts.ImageTag == "" {
		return g.add(companion{Artifact: art, kind: "image", subject: src.Descriptor().Digest})
	}
	g.image = art
	g.imageTags, err = imageTags(g.site.loc, g.tags, g.opts.ImageTag)
	return err
}

// about takes along what refers to a manifest, and what cosign has of it.
func (g *gathering) about(ctx context.Context, subject ocispec.Descriptor) error {
	found, left, err := layout.ReadReferrers(ctx, g.source.store, subject, "")
	if errors.Is(err, layout.ErrUnsupported) {
		err = nil // whoever keeps the content there, keeps no list
	}
	if err != nil {
		return fmt.Errorf("referrers of %s: %w", subject.Digest, err)
	}
	for i, why := range left {
		if i == maxLies {
			g.warnings = append(g.warnings, fmt.Sprintf("and %d more that are listed with %s do not go along",
				len(left)-i, subject.Digest))
			break
		}
		g.warnings = append(g.warnings, "does not go along: "+why.Error())
	}
	slices.SortFunc(found, func(a, b layout.Referrer) int { return cmp.Compare(a.Digest, b.Digest) })
	for _, r := range found {
		if err := g.take(ctx, r.Descriptor, companion{kind: "referrer", subject: subject.Digest}, 0); err != nil {
			return err
		}
	}
	for _, suffix := range cosignTags {
		tag := layout.ReferrersTag(subject.Digest) + suffix
		if g.local != nil && !g.local[tag] {
			continue
		}
		desc, err := g.source.store.Resolve(ctx, tag)
		switch {
		case errors.Is(err, layout.ErrNotFound):
			continue
		case err != nil:
			return fmt.Errorf("tag %s: %w", tag, err)
		}
		if err := g.take(ctx, desc, companion{kind: "signature", subject: subject.Digest, tags: []string{tag}},
			0); err != nil {
			return err
		}
	}
	return nil
}

// take takes a manifest along, behind what it lists.
func (g *gathering) take(ctx context.Context, desc ocispec.Descriptor, as companion, depth int) error {
	if g.seen[desc.Digest] {
		for i := range g.with {
			if g.with[i].Digest == desc.Digest {
				g.with[i].tags = append(g.with[i].tags, as.tags...)
			}
		}
		return nil
	}
	g.seen[desc.Digest] = true
	desc, raw, err := g.source.store.ResolveManifest(ctx, desc.Digest.String())
	if err != nil {
		return err
	}
	what, err := g.what(ctx, desc, raw, "")
	if err != nil {
		return fmt.Errorf("%s %s: %w", as.kind, desc.Digest, err)
	}
	if err := g.entries(ctx, what, depth, as.first); err != nil {
		return err
	}
	if as.Artifact, err = what.artifact(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", as.kind, desc.Digest, err)
	}
	g.next = append(g.next, desc)
	return g.add(as)
}

// entries takes along what an index lists.
func (g *gathering) entries(ctx context.Context, what *content, depth int, first bool) error {
	if depth > maxDepth {
		return limitError("indexes list each other over more than %d steps", maxDepth)
	}
	for _, e := range what.entries {
		if err := g.take(ctx, e, companion{kind: "entry", subject: what.Digest, first: first}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (g *gathering) add(c companion) error {
	if len(g.with) == maxWith {
		return limitError("more than %d manifests belong to %s", maxWith, g.name)
	}
	g.with = append(g.with, c)
	return nil
}

// keepSignatures leaves a tag of cosign's where it is that points to signatures which
// the source does not have: somebody else's, as far as anybody knows.
func (g *gathering) keepSignatures(ctx context.Context) error {
	for i := range g.with {
		c := &g.with[i]
		var tags []string
		for _, tag := range c.tags {
			desc, err := g.site.store.Resolve(ctx, tag)
			if errors.Is(err, layout.ErrNotFound) {
				tags = append(tags, tag)
				continue
			}
			if err != nil {
				return fmt.Errorf("tag %s: %w", tag, err)
			}
			if desc.Digest != c.Digest && !g.hasAll(ctx, c, desc) {
				g.warnings = append(g.warnings,
					"tag "+tag+" stays where it is: it points to signatures that the source does not have")
				continue
			}
			tags = append(tags, tag)
		}
		c.tags = tags
	}
	return nil
}

// hasAll reports whether everything that a manifest has at the other place is also in
// c: signatures were added to it. What can't be read has something else.
func (g *gathering) hasAll(ctx context.Context, c *companion, there ocispec.Descriptor) bool {
	_, m, err := layout.ReadManifest(ctx, g.site.store, there)
	return err == nil && !slices.ContainsFunc(m.Layers, func(d ocispec.Descriptor) bool {
		return !slices.ContainsFunc(c.Layers, func(l layout.Layer) bool { return l.Digest == d.Digest })
	})
}
