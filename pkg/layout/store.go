package layout

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Limits on what is read from outside.
const (
	// MaxManifestBytes is the largest image manifest: what registries accept, and
	// the least that the distribution specification asks them to.
	MaxManifestBytes = 4 << 20
	// MaxConfigBytes is the largest config.
	MaxConfigBytes = 4 << 20
	// MaxLayers is the most layers that an image manifest is read with.
	MaxLayers = 10_000
	// MaxZstdWindow is the largest window, in bytes, a zstd layer may ask for.
	MaxZstdWindow = 128 << 20
	// MaxTarEntries is the most entries, folders included, that a tar layer is
	// read with.
	MaxTarEntries = 400_000
	// MaxTags is the most tags that are listed of one place.
	MaxTags = 1_000_000
	// MaxReferrers is the most referrers that are listed of one manifest.
	MaxReferrers = 10_000
)

// Fetcher is the reading half of a [Store], and all that reading an artifact
// needs. Implementations are safe for concurrent use.
type Fetcher interface {
	// Resolve returns what a tag or digest points to: media type, digest, size.
	// An unknown reference is ErrNotFound. "" is the only manifest of a place that
	// knows that it has just one; the descriptor's annotation
	// org.opencontainers.image.ref.name is then its tag, if it has just one.
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	// ResolveManifest is Resolve and FetchManifest, in one request where that is
	// possible: for who wants the bytes anyway.
	ResolveManifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error)
	// FetchManifest returns an image manifest's bytes, of the right digest.
	FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error)
	// OpenRange opens n bytes of a blob from offset off; n < 0 means to the end.
	// It survives broken connections, and verifies nothing: see [OpenBlob].
	OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error)
	// Tags gives the tags of the place, in the place's order; an error is the last
	// pair. A registry is asked page by page, as they are taken. More than MaxTags are
	// ErrLimit. A place that can't tell is ErrUnsupported.
	Tags(ctx context.Context) iter.Seq2[string, error]
	// Referrers returns the descriptors of the manifests that are listed as naming
	// subject, whether that is there or not: with their artifactType and annotations,
	// as far as the place knows them. With an artifactType those are left out that
	// the place knows to be of another. More than MaxReferrers are ErrLimit.
	//
	// What is listed is a claim, which anybody who may write to the place can make:
	// see [ReadReferrers].
	Referrers(ctx context.Context, subject ocispec.Descriptor, artifactType string) ([]ocispec.Descriptor, error)
}

// Store is a place that keeps OCI content: one repository of a registry, an
// image-layout folder ([Dir]), a tar of one ([Archive], [ArchiveWriter]), or any
// oras.Target ([FromTarget], which is also the shortest way to a store of one's own).
//
// These methods are all that is asked of a store: one that is embedded in a struct
// does there what it does alone. Implementations are safe for concurrent use, and
// pass the tests of package storetest.
type Store interface {
	Fetcher
	// Stat returns a blob's size in bytes, ErrNotFound where there is none.
	Stat(ctx context.Context, dgst digest.Digest) (int64, error)
	// Has reports whether an artifact that is pushed can rely on the store for a
	// blob. A store whose content may be damaged reads the blob, and tells moved, which
	// may be nil, how far it is. A blob of another size is ErrDigest where Push could
	// not replace it.
	Has(ctx context.Context, desc ocispec.Descriptor, moved func(off int64)) (bool, error)
	// Local reports whether reading a blob of the store costs no network.
	Local() bool
	// BlobURL returns where a blob is served over HTTP, to who may read it; "" where
	// the store has no such address.
	BlobURL(dgst digest.Digest) string
	// CheckArtifact refuses what the store is known not to take: too large a layer,
	// too many of them. It sends nothing.
	CheckArtifact(ctx context.Context, a *Artifact) error
	// Mount makes a blob of another repository of the same registry appear here,
	// without its bytes travelling. It returns false where the store can't.
	Mount(ctx context.Context, desc ocispec.Descriptor, from Origin) (bool, error)
	// Push stores a blob. It reads each byte once unless an attempt fails, hashes
	// what it stores, and completes nothing that does not have the layer's digest and
	// size: that is ErrDigest. It may go on with what an earlier push brought. An error
	// of the layer's source comes back as it is, or with text around it.
	Push(ctx context.Context, l Layer, w Watch) error
	// PushStream stores a blob of size bytes whose digest nobody knows, and returns
	// the digest. It reads what open gives once. A store that needs the digest first
	// returns ErrNoStream.
	PushStream(ctx context.Context, size int64, open Opener, w Watch) (digest.Digest, error)
	// PutManifest stores an image manifest, whose blobs are there, and points the tags
	// to it. With no tag it is stored by digest. Bytes that are not what desc says are
	// ErrDigest. One that names a subject is among that one's Referrers then.
	PutManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, opts PutOptions) error
	// Delete removes a tag, and leaves what it points to; or by its digest a manifest,
	// with all tags that point to it. What is not there is ErrNotFound, and a place
	// that lets nobody delete this ErrUnsupported.
	Delete(ctx context.Context, reference string, opts DeleteOptions) error
}

// PutOptions say what an image manifest is stored as.
type PutOptions struct {
	// Tags are pointed to the image manifest.
	Tags []string
	// NoClobber refuses, with ErrTagExists, to move a tag that points to another
	// one. A folder looks while nobody else writes its index; a registry has no such
	// thing, and a tag that moves between two requests is moved again.
	NoClobber bool
}

// DeleteOptions say what is not deleted.
type DeleteOptions struct {
	// KeepTagged refuses, with ErrTagExists, to delete a manifest that a tag points to. A
	// folder looks while nobody else writes its index; a registry has no such thing, and
	// a tag that is set between two requests goes with its manifest.
	KeepTagged bool
}

// Watch is told how a blob gets to its store. The functions may be nil; they are
// called in the middle of the transfer, one at a time.
type Watch struct {
	// Resumed is told how many bytes of an earlier push the store has, before
	// anything is sent; and again, where fewer turn out to be of use.
	Resumed func(n int64)
	// Moved is told the offset that an attempt has reached.
	Moved func(off int64)
	// Sent is told that n bytes more went out. Those that go out again, and those
	// of attempts that fail, count where the store can tell (a registry can).
	Sent func(n int64)
	// Retrying is told why the bytes from off on are fetched again.
	Retrying func(off int64, err error)
}

// NonNil returns w with functions that do nothing in the place of those that are nil.
func (w Watch) NonNil() Watch {
	for _, f := range []*func(int64){&w.Resumed, &w.Moved, &w.Sent} {
		if *f == nil {
			*f = func(int64) {}
		}
	}
	if w.Retrying == nil {
		w.Retrying = func(int64, error) {}
	}
	return w
}

// Opener opens a blob's bytes from offset off to the end. It can be called any
// number of times. An error with a method Temporary() bool that returns true,
// from it or from what it opened, says that opening again from 0 may give other,
// better bytes.
type Opener func(ctx context.Context, off int64) (io.ReadCloser, error)

// OpenBytes opens bytes in memory.
func OpenBytes(b []byte) Opener {
	return func(_ context.Context, off int64) (io.ReadCloser, error) {
		if off < 0 || off > int64(len(b)) {
			return nil, fmt.Errorf("open at offset %d: the size is %d", off, len(b))
		}
		return io.NopCloser(bytes.NewReader(b[off:])), nil
	}
}

// Origin is a repository that is known to hold a blob.
type Origin struct {
	Registry   string // host, with the port where there is one
	Repository string
}

// Layer is a blob of an artifact, as a descriptor and a way to open its bytes.
type Layer struct {
	ocispec.Descriptor
	// Name is what the layer is called where people see it: a member's path, or
	// the name of a bundle.
	Name string
	// Open opens the bytes again.
	Open Opener
	// OpenRange, where it is not nil, opens n bytes from offset off and costs little
	// more than those. A store that writes files fills them from many ranges at
	// once, and goes on with what an earlier push has brought.
	OpenRange func(ctx context.Context, off, n int64) (io.ReadCloser, error)
	// Connections is how many ranges are to be open at once; 0 is 8. [Push] sets it.
	Connections int
	// CheckRanges, where it is not nil, says what is wrong with a blob that was read
	// through OpenRange alone, although it has its digest: what Open would have found
	// around the bytes. crc is their CRC-32 (IEEE).
	CheckRanges func(ctx context.Context, crc uint32) error
	// Check, where it is not nil, reads the bytes where they come from and returns
	// what is wrong with them. It is asked when a store says that what it was given
	// does not have the digest.
	Check func(ctx context.Context) error
	// Vouch, where it is not nil, says what is wrong with the blob although it has
	// its digest. [Push] asks when the blob is in the store, however it got there,
	// and publishes nothing of which it has an error. What was read to its end
	// through Open need not be read again. near is a place on this machine that has
	// the blob by then, or nil; moved is told how much was read.
	Vouch func(ctx context.Context, near Fetcher, moved func(off int64)) error
	// Origins are repositories that the blob can be mounted from.
	Origins []Origin
}

// Artifact is everything that one image manifest needs.
type Artifact struct {
	// Descriptor is the image manifest's.
	ocispec.Descriptor
	// Manifest is the image manifest's bytes.
	Manifest []byte
	// Config is the config blob.
	Config Layer
	// Layers are the blobs, in the image manifest's order. Two may have one
	// digest.
	Layers []Layer
	// Complete, where it is not nil, makes the artifact that this one is when its
	// layers have been read: until then it has no image manifest and no config, and
	// some of its layers may have no digest. learned are the digests of those, in their
	// order.
	Complete func(learned []digest.Digest) (*Artifact, error)
}

// blobs returns the config, where there is one, and the layers. An index has none.
func (a *Artifact) blobs() []Layer {
	if a.Config.Digest == "" {
		return a.Layers
	}
	return append([]Layer{a.Config}, a.Layers...)
}
