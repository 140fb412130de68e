package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/ranges"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
)

// Target is what [FromTarget] makes a Store of: oras-go's oras.Target, without
// the rest of oras-go.
type Target interface {
	content.Storage
	content.TagResolver
}

// FromTarget makes a [Store] of any oras.Target: oras-go's memory and file
// stores, its image-layout folder, or a type of the caller's own.
//
// A target may know content by media type, digest and size together, as
// oras-go's memory store does. So a blob that nothing here has pushed is not
// found by its digest alone unless the target finds it so, and PutManifest
// stores blobs again that the image manifest lists under several media types.
// Ranges are read by seeking where the target's readers can, else by reading
// what comes before.
func FromTarget(t Target) Store { return &target{t: t, pushed: map[digest.Digest]ocispec.Descriptor{}} }

type target struct {
	t       Target
	listing sync.Mutex // held while an index of referrers changes
	mu      sync.Mutex
	// pushed has one of the descriptors that a blob is known by in t.
	pushed map[digest.Digest]ocispec.Descriptor
}

// Resolve implements [Fetcher].
func (s *target) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	if reference == "" { // of some targets an error of another kind
		return ocispec.Descriptor{}, errorf(ErrNotFound, "", "a target does not say what it has")
	}
	desc, err := s.t.Resolve(ctx, reference)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return plainDescriptor(desc), nil
}

// ResolveManifest implements [Fetcher].
func (s *target) ResolveManifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error) {
	return resolveManifest(ctx, s, reference)
}

// FetchManifest implements [Fetcher].
func (s *target) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return ReadBlob(ctx, s, desc, MaxManifestBytes)
}

// OpenRange implements [Fetcher].
func (s *target) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	if n < 0 {
		n = desc.Size - off
	}
	if err := checkRange(desc, off, n); err != nil {
		return nil, err
	}
	r, err := s.fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	if _, seeks := r.(io.Seeker); !seeks && n < desc.Size && ranges.IsOnly(ctx) {
		r.Close()
		return nil, fmt.Errorf("read %s: %w: the target's readers can't seek", desc.Digest, ranges.ErrNone)
	}
	if err := skipTo(r, off); err != nil {
		r.Close()
		return nil, fmt.Errorf("read %s from %d: %w", desc.Digest, off, err)
	}
	if off+n == desc.Size {
		return r, nil // whatever follows shows that the size is wrong
	}
	return iox.ReadCloser{Reader: &iox.Exactly{R: r, N: n}, Closer: r}, nil
}

// fetch opens a blob under the descriptor, or under the one it was pushed as.
func (s *target) fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	r, err := s.t.Fetch(ctx, desc)
	if other, ok := s.knownAs(desc); ok && errors.Is(err, errdef.ErrNotFound) {
		return s.t.Fetch(ctx, other)
	}
	return r, err
}

func (s *target) knownAs(desc ocispec.Descriptor) (ocispec.Descriptor, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	other, ok := s.pushed[desc.Digest]
	return other, ok
}

func (s *target) remember(desc ocispec.Descriptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushed[desc.Digest] = desc
}

// Stat implements [Store].
func (s *target) Stat(ctx context.Context, dgst digest.Digest) (int64, error) {
	if err := CheckDigest(dgst); err != nil {
		return 0, err
	}
	desc, ok := s.knownAs(ocispec.Descriptor{Digest: dgst})
	if ok {
		return desc.Size, nil
	}
	r, err := s.t.Fetch(ctx, ocispec.Descriptor{MediaType: "application/octet-stream", Digest: dgst})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	// Its readers tell the size, or it has to be asked for by descriptor.
	if seeker, ok := r.(io.Seeker); ok {
		return seeker.Seek(0, io.SeekEnd)
	}
	return 0, errorf(ErrNotFound, string(dgst), "the target does not say how large it is")
}

// Local implements [Store]: where a target keeps its content nobody knows.
func (s *target) Local() bool { return false }

// BlobURL implements [Store]: a target tells of none.
func (s *target) BlobURL(digest.Digest) string { return "" }

// CheckArtifact implements [Store]: what a target does not take, it says itself.
func (s *target) CheckArtifact(context.Context, *Artifact) error { return nil }

// Has implements [Store]: it asks for content under just this descriptor.
func (s *target) Has(ctx context.Context, desc ocispec.Descriptor, _ func(off int64)) (bool, error) {
	ok, err := s.t.Exists(ctx, desc)
	if !ok || err != nil {
		return false, err
	}
	if other, ok := s.knownAs(desc); ok && other.Size != desc.Size { // a folder's target asks for the digest alone
		return false, errorf(ErrDigest, string(desc.Digest), "is %d bytes in the target, want %d", other.Size,
			desc.Size)
	}
	s.remember(desc)
	return true, nil
}

// Mount implements [Store]: a target has no repositories.
func (s *target) Mount(context.Context, ocispec.Descriptor, Origin) (bool, error) { return false, nil }

// PushStream implements [Store]: a target is given descriptors.
func (s *target) PushStream(context.Context, int64, Opener, Watch) (digest.Digest, error) {
	return "", ErrNoStream
}

// Push implements [Store].
func (s *target) Push(ctx context.Context, l Layer, w Watch) error {
	desc := l.Descriptor
	if err := CheckDescriptor(desc); err != nil {
		return err
	}
	if ok, err := s.Has(ctx, desc, nil); ok || err != nil {
		return err
	}
	r, err := l.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	// A target that stops reading early, at the last byte it wants, must not
	// complete a blob whose end was never judged.
	v := newVerifier(r, desc)
	v.Withhold = true
	content := &watched{ctx: ctx, src: iox.Source{R: v}, watch: w.NonNil()}
	err = s.t.Push(ctx, desc, content)
	switch {
	case content.src.Err != nil: // the target's own error hides it
		return content.src.Err
	case err != nil && !errors.Is(err, errdef.ErrAlreadyExists):
		return err
	}
	s.remember(desc)
	return nil
}

// PutManifest implements [Store].
func (s *target) PutManifest(ctx context.Context, desc ocispec.Descriptor, manifest []byte, opts PutOptions) error {
	if err := checkContent(desc, manifest); err != nil {
		return err
	}
	if opts.NoClobber {
		if err := CheckTags(ctx, s, desc.Digest, opts.Tags...); err != nil {
			return err
		}
	}
	if err := s.completeTypes(ctx, desc, manifest); err != nil {
		return err
	}
	if err := s.Push(ctx, manifestLayer(desc, manifest), Watch{}); err != nil {
		return err
	}
	tags := opts.Tags
	// So that the digest resolves too, as it does in a registry.
	if _, err := s.t.Resolve(ctx, string(desc.Digest)); errors.Is(err, errdef.ErrNotFound) {
		tags = append([]string{string(desc.Digest)}, tags...)
	}
	for _, tag := range tags {
		if err := s.t.Tag(ctx, desc, tag); err != nil {
			return fmt.Errorf("tag %s: %w", quote(tag), err)
		}
	}
	return s.listReferrer(ctx, desc, manifest)
}

// completeTypes stores blobs again under those descriptors of an image manifest
// that the target does not find them by.
func (s *target) completeTypes(ctx context.Context, desc ocispec.Descriptor, manifest []byte) error {
	if desc.MediaType != ocispec.MediaTypeImageManifest {
		return nil
	}
	m, err := ParseManifest(manifest)
	if err != nil {
		return err
	}
	for _, d := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
		other, ok := s.knownAs(d)
		if !ok {
			continue
		}
		again := func(ctx context.Context, off int64) (io.ReadCloser, error) { return s.OpenRange(ctx, other, off, -1) }
		if err := s.Push(ctx, Layer{Descriptor: d, Open: again}, Watch{}); err != nil {
			return err
		}
	}
	return nil
}

// skipTo moves a reader to an offset.
func skipTo(r io.Reader, off int64) error {
	if off == 0 {
		return nil
	}
	if seeker, ok := r.(io.Seeker); ok {
		_, err := seeker.Seek(off, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, r, off)
	return iox.Unexpected(err)
}

// watched is what a target reads: it tells how far that is, and remembers the
// error that a target may hide.
type watched struct {
	ctx   context.Context //nolint:containedctx // of one call
	src   iox.Source
	watch Watch
}

func (r *watched) Read(b []byte) (int, error) {
	if r.src.Err = cmp.Or(r.src.Err, r.ctx.Err()); r.src.Err != nil {
		return 0, r.src.Err
	}
	n, err := r.src.Read(b)
	if n > 0 {
		r.watch.Sent(int64(n))
		r.watch.Moved(r.src.N)
	}
	return n, err
}
