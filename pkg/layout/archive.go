package layout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Archive is a tar of an image layout as a [Store] that is only read: what skopeo
// and podman call an oci-archive. Nothing is unpacked. Where each blob lies is known
// from the tar's headers, so that a range of it costs that range.
//
// [ArchiveWriter] writes one. An archive is not changed afterwards: whatever would
// is [ErrUnsupported].
type Archive struct {
	path  string
	info  fs.FileInfo // of the file that was opened
	blobs map[digest.Digest]extent
	index *indexFile
	refs  subjects
}

var _ Store = (*Archive)(nil)

// extent is where in a file something lies.
type extent struct{ off, n int64 }

// OpenArchive opens the tar of an image layout, and reads its headers and its index.
// It takes what any program writes, in any order, with or without folders of their own.
//
// Everything else is ErrFormat: a tar that ends early or holds a name twice, links,
// sparse files, names that no image layout has, and a tar that is compressed. An
// archive of Docker's own format, which holds no image layout, is named. A file that
// docker save puts beside an image layout is passed over.
func OpenArchive(path string) (*Archive, error) {
	f, err := localfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &Archive{path: path, blobs: map[digest.Digest]extent{}}
	if a.info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := refuseCompressed(path, f); err != nil {
		return nil, err
	}
	files, err := a.scan(f)
	if err != nil {
		return nil, err
	}
	version, err := a.read(f, files, ocispec.ImageLayoutFile)
	if err == nil {
		err = checkVersion(a.inside(ocispec.ImageLayoutFile), version)
	}
	if err != nil {
		return nil, err
	}
	index, err := a.read(f, files, ocispec.ImageIndexFile)
	if err != nil {
		return nil, err
	}
	a.index, err = parseIndexFile(a.inside(ocispec.ImageIndexFile), index)
	return a, err
}

// inside is what errors call a file of the archive.
func (a *Archive) inside(name string) string { return name + " in " + a.path }

// read reads a small file of the archive.
func (a *Archive) read(f io.ReaderAt, files map[string]extent, name string) ([]byte, error) {
	e, ok := files[name]
	switch {
	case !ok:
		return nil, errorf(ErrFormat, a.path, "is no archive of an image layout: it holds no %s", name)
	case e.n > MaxManifestBytes:
		return nil, errorf(ErrLimit, a.inside(name), "is over %d bytes", MaxManifestBytes)
	}
	b := make([]byte, e.n)
	if _, err := io.ReadFull(io.NewSectionReader(f, e.off, e.n), b); err != nil {
		return nil, fmt.Errorf("read %s: %w", a.inside(name), err)
	}
	return b, nil
}

// checkVersion wants the one version of the format of image layouts that there is.
func checkVersion(name string, content []byte) error {
	var l ocispec.ImageLayout
	if err := checkJSON(content, layoutShape); err != nil {
		return errorf(ErrFormat, name, "%s", err)
	}
	if err := json.Unmarshal(content, &l); err != nil || l.Version != ocispec.ImageLayoutVersion {
		return errorf(ErrFormat, name, "got the version %s, want %s", quote(l.Version), ocispec.ImageLayoutVersion)
	}
	return nil
}

// Path returns the file's path as it was given.
func (a *Archive) Path() string { return a.path }

func (a *Archive) subjects() *subjects { return &a.refs }

func (a *Archive) open() (*indexFile, error) { return a.index, nil }

// Resolve implements [Fetcher]. A digest is also found where no entry of index.json
// lists it, as long as the archive holds the manifest.
func (a *Archive) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	return resolveIn(ctx, a, reference)
}

// ResolveManifest implements [Fetcher].
func (a *Archive) ResolveManifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error) {
	return resolveManifest(ctx, a, reference)
}

// FetchManifest implements [Fetcher].
func (a *Archive) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return ReadBlob(ctx, a, desc, MaxManifestBytes)
}

// Tags implements [Fetcher].
func (a *Archive) Tags(context.Context) iter.Seq2[string, error] { return tagsIn(a) }

// Referrers implements [Fetcher]: of the manifests that index.json lists.
func (a *Archive) Referrers(
	ctx context.Context, subject ocispec.Descriptor, artifactType string,
) ([]ocispec.Descriptor, error) {
	return referrersIn(ctx, a, subject, artifactType)
}

// Stat implements [Store].
func (a *Archive) Stat(_ context.Context, dgst digest.Digest) (int64, error) {
	if err := CheckDigest(dgst); err != nil {
		return 0, err
	}
	e, ok := a.blobs[dgst]
	if !ok {
		return 0, errorf(ErrNotFound, string(dgst), "no such blob in %s", quote(a.path))
	}
	return e.n, nil
}

// OpenRange implements [Fetcher]. A blob of another size than desc's is
// ErrDigest; a range that ends past it, io.ErrUnexpectedEOF. An archive that is
// another file than when it was opened is ErrDigest, too.
func (a *Archive) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	size, err := a.Stat(ctx, desc.Digest)
	if err != nil {
		return nil, err
	}
	if n, err = rangeOf(desc, size, off, n, a.path); err != nil {
		return nil, err
	}
	f, err := localfile.Open(a.path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!os.SameFile(info, a.info) || info.Size() != a.info.Size() ||
		!info.ModTime().Equal(a.info.ModTime())) {
		err = hint.With(errorf(ErrDigest, a.path, "was changed while it was read"),
			"run it again when nobody writes to it")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return section(f, f, a.blobs[desc.Digest].off+off, n), nil
}

// section reads n bytes of a file from off, no more and no less.
func section(f io.ReaderAt, c io.Closer, off, n int64) io.ReadCloser {
	return iox.ReadCloser{Reader: &iox.Exactly{R: io.NewSectionReader(f, off, n), N: n}, Closer: c}
}

// rangeOf returns how many bytes a range has of a blob that has so many in the
// place called path.
func rangeOf(desc ocispec.Descriptor, size, off, n int64, path string) (int64, error) {
	if size != desc.Size {
		return 0, errorf(ErrDigest, string(desc.Digest), "is %d bytes in %s, want %d", size, quote(path), desc.Size)
	}
	if n < 0 {
		n = size - off
	}
	return n, checkRange(desc, off, n)
}

// Has implements [Store]: it reads the blob.
func (a *Archive) Has(ctx context.Context, desc ocispec.Descriptor, moved func(off int64)) (bool, error) {
	_, err := a.Stat(ctx, desc.Digest)
	if err == nil {
		err = readThrough(ctx, a, desc, moved)
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDigest) {
		return false, nil
	}
	return err == nil, err
}

// Local implements [Store]: a file is on this machine.
func (a *Archive) Local() bool { return true }

// BlobURL implements [Store]: a file has no address.
func (a *Archive) BlobURL(digest.Digest) string { return "" }

// CheckArtifact implements [Store]: an archive that is there takes nothing.
func (a *Archive) CheckArtifact(context.Context, *Artifact) error { return a.unchanged() }

// Mount returns false: a file has no repositories.
func (a *Archive) Mount(context.Context, ocispec.Descriptor, Origin) (bool, error) { return false, nil }

// Push implements [Store].
func (a *Archive) Push(context.Context, Layer, Watch) error { return a.unchanged() }

// PushStream implements [Store].
func (a *Archive) PushStream(context.Context, int64, Opener, Watch) (digest.Digest, error) {
	return "", a.unchanged()
}

// PutManifest implements [Store].
func (a *Archive) PutManifest(context.Context, ocispec.Descriptor, []byte, PutOptions) error {
	return a.unchanged()
}

// Delete implements [Store].
func (a *Archive) Delete(context.Context, string, DeleteOptions) error { return a.unchanged() }

func (a *Archive) unchanged() error { return Unchanged(a.path) }

// Unchanged is the error of what would change an archive.
func Unchanged(path string) error {
	err := errorf(ErrUnsupported, path, "is an archive, which is written whole and not changed afterwards")
	return hint.With(err, "copy it into an image layout: %s %s %s oci:DIR", hint.Copy, hint.Recursive, path)
}
