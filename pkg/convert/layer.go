package convert

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// compressor names the library whose output reaches the digests of compressed
// bundles. Its version is pinned in go.mod; a test compares.
const compressor = "github.com/klauspost/compress v1.20.3"

// layer is a layer of an artifact or an image that is being made: first what it
// holds, then what is known of its bytes. The layers of an image are those of the
// artifact where the two share them.
type layer struct {
	name     string // the member's path, or the bundle's name
	category category
	format   format
	// members are what the layer holds, in bytewise order of paths: the one member
	// of a raw layer, the files or the symlinks of a tar.
	members    []*carton.Member
	manifest   bool // it holds MANIFEST, which is no member
	modelsLink bool // it holds the symlink models, which is no member
	links      bool // the members are symlinks
	extra      bool // it is a copy for the page of a registry: no member

	size   int64
	digest digest.Digest // of a tar layer "" until it was read
	diffID digest.Digest // of the bytes before compression
	open   layout.Opener // again, from any offset
	tar    *layout.TarPlan
	source layout.MemberOpener // of the tar's members
}

// paths returns what the layer holds: members, "MANIFEST" among them; the name of an
// extra.
func (l *layer) paths() []string {
	paths := []string{}
	if l.manifest {
		paths = append(paths, carton.ManifestName)
	}
	if l.extra {
		paths = append(paths, l.name)
	}
	for _, m := range l.members {
		paths = append(paths, m.Path)
	}
	return paths
}

// prepare says how the layer's bytes are made. It reads nothing.
func (l *layer) prepare(src carton.Source) error {
	switch {
	case l.open != nil:
		return nil
	case l.format != formatRaw:
		return l.prepareTar(src)
	case l.manifest:
		m := src.Manifest()
		l.digest, l.size, l.open = digestOf(m.ModelHash()), m.Len(), layout.OpenBytes(m.Bytes())
	default:
		m := l.members[0]
		l.digest, l.size, l.open = digestOf(m.Hash), m.Size, memberOpener(src, m)
	}
	l.diffID = l.digest
	return nil
}

func (l *layer) prepareTar(src carton.Source) error {
	var entries []layout.TarEntry
	if l.manifest {
		entries = append(entries, layout.TarEntry{Path: carton.ManifestName, Size: src.Manifest().Len()})
	}
	if l.modelsLink {
		entries = append(entries, modelsLink)
	}
	for _, m := range l.members {
		e := layout.TarEntry{Path: m.Path, Size: m.Size, Target: m.Target}
		if l.links {
			e.Size = 0
		}
		entries = append(entries, e)
	}
	var err error
	l.tar, err = layout.NewTarPlan(entries)
	if err != nil {
		return err
	}
	l.size, l.open = l.tar.Size(), l.openTar
	l.source = func(ctx context.Context, path string, off int64) (io.ReadCloser, error) {
		return openFrom(ctx, src, path, off)
	}
	return nil
}

// digestOf is the digest of a blob whose sha256 is known, in lower-case hex.
func digestOf(hash string) digest.Digest { return digest.NewDigestFromEncoded(digest.SHA256, hash) }

// openFrom opens a member from an offset: verified where it is 0.
func openFrom(ctx context.Context, src carton.Source, path string, off int64) (io.ReadCloser, error) {
	if off == 0 {
		return src.Open(ctx, path)
	}
	return src.OpenRange(ctx, path, off, -1)
}

// memberOpener opens a member as a raw layer.
func memberOpener(src carton.Source, m *carton.Member) layout.Opener {
	return func(ctx context.Context, off int64) (io.ReadCloser, error) {
		// A store hashes what it is given, and the layer's digest is the member's
		// hash. Bytes that lie here as they are would be hashed twice.
		if !m.Ranged || m.Place != carton.PlaceStored && m.Place != carton.PlaceFile {
			return openFrom(ctx, src, m.Path, off)
		}
		r, err := src.OpenRange(ctx, m.Path, off, -1)
		if err != nil || off > 0 {
			return r, err
		}
		return judgedRange(ctx, src, m.Path, r), nil
	}
}

// openTar opens a tar layer's blob. Compressed bytes are made again and skipped up
// to off.
func (l *layer) openTar(ctx context.Context, off int64) (io.ReadCloser, error) {
	if l.format == formatTar {
		return l.tar.Open(ctx, off, l.source)
	}
	r, err := l.compress(ctx, io.Discard)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, off); err != nil {
		return nil, errors.Join(fmt.Errorf("skip to offset %d of a bundle: %w", off, err), r.Close())
	}
	return r, nil
}

// learn reads a tar layer's members, verified, to learn its digest, unless that is
// known. No earlier run is asked: what a digest stands for is published under it,
// and a file that says what a digest is can be written by somebody else.
func (l *layer) learn(ctx context.Context) error {
	if l.digest != "" {
		return nil
	}
	if l.format == formatTar {
		dgst, err := l.tar.Digest(ctx, l.source)
		l.digest, l.diffID = dgst, dgst
		return err
	}
	plain, packed := digest.SHA256.Digester(), digest.SHA256.Digester()
	r, err := l.compress(ctx, plain.Hash())
	if err != nil {
		return err
	}
	defer r.Close()
	if l.size, err = io.Copy(packed.Hash(), r); err != nil {
		return err
	}
	l.digest, l.diffID = packed.Digest(), plain.Digest()
	return nil
}

// compress opens the compressed tar; plain is given the uncompressed bytes too.
func (l *layer) compress(ctx context.Context, plain io.Writer) (io.ReadCloser, error) {
	tar, err := l.tar.Open(ctx, 0, l.source)
	if err != nil {
		return nil, err
	}
	return layout.Compress(l.format.compression(), iox.ReadCloser{Reader: io.TeeReader(tar, plain), Closer: tar})
}

// inArtifact returns the layer as an artifact of a family of media types has it.
// list is its run.carton.members, or "".
func (l *layer) inArtifact(src carton.Source, types mediaTypes, list string) layout.Layer {
	out := l.blob(types.of(l.category, l.format))
	out.Annotations = namedAs(l.name)
	if l.format != formatRaw {
		if list != "" {
			out.Annotations[AnnotationMembers] = list
		}
		return out
	}
	out.Annotations[types.metadata] = metadataOf(l.name, l.size)
	switch {
	case l.extra:
		out.Annotations[AnnotationExtra] = "true"
	case !l.manifest:
		readInRanges(src, l.members[0], &out)
		if target := l.members[0].Target; target != "" {
			out.Annotations[AnnotationSymlink] = target
		}
	}
	return out
}

// inImage returns the layer as an image has it.
func (l *layer) inImage(list string) layout.Layer { return inImage(l.blob(""), l.format, list) }

// inImage gives a layer an image's media type, and of the annotations only the one
// that lists members.
func inImage(l layout.Layer, f format, list string) layout.Layer {
	l.MediaType, l.Annotations = imageTypes[f], nil
	if list != "" {
		l.Annotations = map[string]string{AnnotationMembers: list}
	}
	return l
}

func (l *layer) blob(mediaType string) layout.Layer {
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: l.digest, Size: l.size}
	return layout.Layer{Descriptor: desc, Name: l.name, Open: l.open}
}

// readInRanges lets a store read a raw layer in ranges, where its member can be.
func readInRanges(src carton.Source, m *carton.Member, out *layout.Layer) {
	if !m.Ranged {
		return
	}
	out.OpenRange = func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
		return src.OpenRange(ctx, m.Path, off, n)
	}
	out.CheckRanges = func(ctx context.Context, crc uint32) error { return checkRanges(ctx, src, m.Path, crc) }
	out.Check = memberCheck(src, m.Path)
}
