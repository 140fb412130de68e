// Package storetest tests implementations of layout.Store, as testing/fstest does
// those of fs.FS: [TestStore] holds one against everything that the interface
// promises. It also makes the small blobs and artifacts that such tests need.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	typeBlob   = "application/vnd.example.layer.v1.raw"
	typeConfig = "application/vnd.example.config.v1+json"
)

// TestStore runs all tests, each with a store of its own that newStore makes empty.
// A store need not go on with what an earlier push brought, nor take blobs without
// their digests, list its tags or delete; where it says that it does, it is held to that.
func TestStore(t *testing.T, newStore func() layout.Store) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, layout.Store)
	}{
		{"NothingIsThere", nothingIsThere},
		{"PushAndRead", pushAndRead},
		{"PushReadsEachByteOnce", pushReadsOnce},
		{"PushAgain", pushAgain},
		{"PushOfOtherBytes", pushOfOtherBytes},
		{"PushOfABrokenSource", pushOfABrokenSource},
		{"PushStopsWithItsContext", pushStops},
		{"BadDescriptors", badDescriptors},
		{"Ranges", ranges},
		{"Has", has},
		{"MountFromNowhere", mountFromNowhere},
		{"PushGoesOn", pushGoesOn},
		{"PushStream", pushStream},
		{"PushStreamOfOtherBytes", pushStreamOfOtherBytes},
		{"Manifests", manifests},
		{"OnlyManifest", onlyManifest},
		{"TagsMove", tagsMove},
		{"PutOfOtherBytes", putOfOtherBytes},
		{"NoClobber", noClobber},
		{"PushesAtOnce", pushesAtOnce},
		{"WholeArtifact", wholeArtifact},
		{"Tags", tags},
		{"Referrers", referrers},
		{"ReferrersAtOnce", referrersAtOnce},
		{"DeleteATag", deleteTag},
		{"DeleteAManifest", deleteManifest},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newStore()) })
	}
}

// Blob returns n bytes that depend on the seed, and their descriptor.
func Blob(seed byte, n int) ([]byte, ocispec.Descriptor) {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{seed})
	rng.Read(b) //nolint:errcheck // never fails
	return b, describe(typeBlob, b)
}

func describe(mediaType string, b []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
}

// Opener opens b's bytes, hiding that they could be had otherwise.
func Opener(b []byte) layout.Opener {
	return func(_ context.Context, off int64) (io.ReadCloser, error) {
		return io.NopCloser(iotest.DataErrReader(bytes.NewReader(b[off:]))), nil
	}
}

// Layer is b as a blob to push.
func Layer(desc ocispec.Descriptor, b []byte) layout.Layer {
	return layout.Layer{Descriptor: desc, Open: Opener(b)}
}

func push(t *testing.T, s layout.Store, b []byte, desc ocispec.Descriptor) {
	t.Helper()
	if err := s.Push(t.Context(), Layer(desc, b), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
}

func wantBlob(t *testing.T, s layout.Store, b []byte, desc ocispec.Descriptor) {
	t.Helper()
	if n, err := s.Stat(t.Context(), desc.Digest); err != nil || n != desc.Size {
		t.Errorf("Stat: got %d, %v, want %d", n, err, desc.Size)
	}
	got, err := layout.ReadBlob(t.Context(), s, desc, desc.Size)
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(b))
	}
	if url := s.BlobURL(desc.Digest); url != "" && !strings.Contains(url, desc.Digest.Encoded()) {
		t.Errorf("BlobURL: got %s, want one with the digest", url)
	}
}

func wantNoBlob(t *testing.T, s layout.Store, desc ocispec.Descriptor) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if _, err := s.Stat(ctx, desc.Digest); !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("Stat: got %v, want ErrNotFound", err)
	}
	if r, err := s.OpenRange(ctx, desc, 0, -1); err == nil {
		b, err := io.ReadAll(r)
		r.Close()
		if !errors.Is(err, layout.ErrNotFound) {
			t.Errorf("OpenRange: got %d bytes and %v, want ErrNotFound", len(b), err)
		}
	} else if !errors.Is(err, layout.ErrNotFound) {
		t.Errorf("OpenRange: got %v, want ErrNotFound", err)
	}
}
