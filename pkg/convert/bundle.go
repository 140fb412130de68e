package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// compressor names the library whose output reaches the digests of compressed
// bundles. Its version is pinned in go.mod; a test compares.
const compressor = "github.com/klauspost/compress v1.20.3"

// bundle is a tar layer as a recipe: it can be opened again from any offset.
type bundle struct {
	tar    *layout.TarPlan
	format format
	open   layout.MemberOpener
	key    string // names all that the bytes depend on
}

// newBundle plans the tar of a layer.
func newBundle(src carton.Source, l *planned) (*bundle, error) {
	b := &bundle{format: l.format}
	var entries []layout.TarEntry
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", l.format)
	if l.manifest {
		m := src.Manifest()
		entries = append(entries, layout.TarEntry{Path: carton.ManifestName, Size: m.Len()})
		fmt.Fprintf(h, "%q %s\n", carton.ManifestName, m.ModelHash())
	}
	if l.alias {
		entries = append(entries, aliasEntry)
		fmt.Fprintf(h, "%q %q\n", aliasEntry.Path, aliasEntry.Target)
	}
	for _, m := range l.members {
		e := layout.TarEntry{Path: m.Path, Size: m.Size, Target: m.Target}
		if l.links {
			e.Size = 0
		}
		entries = append(entries, e)
		fmt.Fprintf(h, "%q %s %d %q\n", m.Path, m.Hash, e.Size, e.Target)
	}
	b.key = hex.EncodeToString(h.Sum(nil))
	b.open = func(ctx context.Context, path string, off int64) (io.ReadCloser, error) {
		return openFrom(ctx, src, path, off)
	}
	var err error
	b.tar, err = layout.NewTarPlan(entries)
	return b, err
}

// openFrom opens a member from an offset: verified where it is 0.
func openFrom(ctx context.Context, src carton.Source, path string, off int64) (io.ReadCloser, error) {
	if off == 0 {
		return src.Open(ctx, path)
	}
	return src.OpenRange(ctx, path, off, -1)
}

// Open opens the blob's bytes. Compressed ones are made again and skipped up to
// off.
func (b *bundle) Open(ctx context.Context, off int64) (io.ReadCloser, error) {
	if b.format == formatTar {
		return b.tar.Open(ctx, off, b.open)
	}
	r, err := b.compress(ctx, io.Discard)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, off); err != nil {
		return nil, errors.Join(fmt.Errorf("skip to offset %d of a bundle: %w", off, err), r.Close())
	}
	return r, nil
}

// bundleDigest is what is known of a bundle once it was read.
type bundleDigest struct {
	Digest digest.Digest
	Size   int64
	DiffID digest.Digest // the uncompressed tar's
}

// digest reads the bundle's members, verified. No earlier run is asked: what a
// digest stands for is published under it, and a file that says what a digest
// is can be written by somebody else.
func (b *bundle) digest(ctx context.Context) (d bundleDigest, err error) {
	if b.format == formatTar {
		d.Digest, err = b.tar.Digest(ctx, b.open)
		d.DiffID, d.Size = d.Digest, b.tar.Size()
		return d, err
	}
	plain, packed := digest.SHA256.Digester(), digest.SHA256.Digester()
	r, err := b.compress(ctx, plain.Hash())
	if err != nil {
		return d, err
	}
	defer r.Close()
	d.Size, err = io.Copy(packed.Hash(), r)
	d.Digest, d.DiffID = packed.Digest(), plain.Digest()
	return d, err
}

// compress opens the compressed tar; plain is given the uncompressed bytes too.
func (b *bundle) compress(ctx context.Context, plain io.Writer) (io.ReadCloser, error) {
	tar, err := b.tar.Open(ctx, 0, b.open)
	if err != nil {
		return nil, err
	}
	return layout.Compress(b.format.compression(), iox.ReadCloser{Reader: io.TeeReader(tar, plain), Closer: tar})
}
