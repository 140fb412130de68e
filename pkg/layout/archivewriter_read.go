package layout

import (
	"context"
	"io"
	"iter"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// An archive that is being written can be read, so that what came by ranges is
// vouched for without asking for it again. It has no tags yet.

// Resolve implements [Fetcher]: there is nothing to be found before End.
func (w *ArchiveWriter) Resolve(_ context.Context, reference string) (ocispec.Descriptor, error) {
	return ocispec.Descriptor{}, errorf(ErrNotFound, reference, "is in no archive that is whole")
}

// ResolveManifest implements [Fetcher].
func (w *ArchiveWriter) ResolveManifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error) {
	return resolveManifest(ctx, w, reference)
}

// FetchManifest implements [Fetcher].
func (w *ArchiveWriter) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return ReadBlob(ctx, w, desc, MaxManifestBytes)
}

// Tags implements [Fetcher].
func (w *ArchiveWriter) Tags(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// Referrers implements [Fetcher].
func (w *ArchiveWriter) Referrers(context.Context, ocispec.Descriptor, string) ([]ocispec.Descriptor, error) {
	return nil, nil
}

// Stat implements [Store].
func (w *ArchiveWriter) Stat(_ context.Context, dgst digest.Digest) (int64, error) {
	if err := CheckDigest(dgst); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	size, ok := w.stored[dgst]
	if !ok {
		return 0, errorf(ErrNotFound, string(dgst), "no such blob in %s", quote(w.path))
	}
	return size, nil
}

// OpenRange implements [Fetcher].
func (w *ArchiveWriter) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	size, err := w.Stat(ctx, desc.Digest)
	if err == nil {
		n, err = rangeOf(desc, size, off, n, w.path)
	}
	if err != nil {
		return nil, err
	}
	return section(w.file, closerFunc(func() error { return nil }), w.offset(desc.Digest)+off, n), nil
}

// Has implements [Store]. What is there was hashed by this process.
func (w *ArchiveWriter) Has(_ context.Context, desc ocispec.Descriptor, _ func(off int64)) (bool, error) {
	return w.has(desc.Digest), nil
}

// Local implements [Store]: a file is on this machine.
func (w *ArchiveWriter) Local() bool { return true }

// BlobURL implements [Store]: a file has no address.
func (w *ArchiveWriter) BlobURL(digest.Digest) string { return "" }

// CheckArtifact implements [Store]: an archive takes anything.
func (w *ArchiveWriter) CheckArtifact(context.Context, *Artifact) error { return nil }

// Mount returns false: a file has no repositories.
func (w *ArchiveWriter) Mount(context.Context, ocispec.Descriptor, Origin) (bool, error) {
	return false, nil
}

// PushStream implements [Store]: a blob's name is its digest.
func (w *ArchiveWriter) PushStream(context.Context, int64, Opener, Watch) (digest.Digest, error) {
	return "", ErrNoStream
}

// Delete implements [Store].
func (w *ArchiveWriter) Delete(_ context.Context, reference string, _ DeleteOptions) error {
	return errorf(ErrNotFound, reference, "is in no archive that is whole")
}
