package layout

import (
	"context"
	"io"

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
)

// Fetcher is the reading half of a [Store], and all that reading an artifact
// needs. Implementations are safe for concurrent use.
type Fetcher interface {
	// Resolve returns what a tag or digest points to: media type, digest, size.
	// An unknown reference is ErrNotFound.
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	// FetchManifest returns an image manifest's bytes, of the right digest.
	FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error)
	// OpenRange opens n bytes of a blob from offset off; n < 0 means to the end.
	// It survives broken connections, and verifies nothing: see [OpenBlob].
	OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error)
}

// Store is a place that keeps OCI content: one repository of a registry, an
// image-layout folder, or any oras.Target ([FromTarget]).
//
// A store may have methods besides, which [Push] and the functions of this
// package look for:
//
//	// Has is what the function of this name asks, where a digest alone says too little.
//	Has(ctx context.Context, desc ocispec.Descriptor) (bool, error)
//	// Upload is Push that tells more, and may go on with what an earlier run began.
//	Upload(ctx context.Context, desc ocispec.Descriptor, open Opener, w Watch) error
//	// CheckArtifact refuses what the store is known not to take, before any byte is sent.
//	CheckArtifact(ctx context.Context, a *Artifact) error
type Store interface {
	Fetcher
	// Stat returns a blob's size in bytes, ErrNotFound where there is none.
	Stat(ctx context.Context, dgst digest.Digest) (int64, error)
	// Mount makes a blob of another repository of the same registry appear here,
	// without its bytes travelling. It returns false where the store can't.
	Mount(ctx context.Context, desc ocispec.Descriptor, from Origin) (bool, error)
	// Push stores a blob. It reads each byte once unless an attempt fails, hashes
	// what it sends, and completes nothing that does not have desc's digest and
	// size. sent, which may be nil, is told the offset that an attempt has reached.
	Push(ctx context.Context, desc ocispec.Descriptor, open Opener, sent func(off int64)) error
	// PutManifest stores an image manifest and points the tags to it. With no tag
	// it is stored by digest.
	PutManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error
}

// Watch is told how a blob gets to its store. The functions may be nil; they are
// called in the middle of the transfer, one at a time.
type Watch struct {
	// Resumed is told how many bytes of an earlier run the store has, before
	// anything is sent; and 0, should they turn out to be of no use.
	Resumed func(n int64)
	// Moved is told the offset that an attempt has reached.
	Moved func(off int64)
	// Sent is told that n bytes more went out, also those that went out before.
	Sent func(n int64)
}

// Opener opens a blob's bytes from offset off to the end. It can be called any
// number of times. An error with a method Temporary() bool that returns true,
// from it or from what it opened, says that opening again from 0 may give other,
// better bytes.
type Opener func(ctx context.Context, off int64) (io.ReadCloser, error)

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
}
