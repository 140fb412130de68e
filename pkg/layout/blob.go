package layout

import (
	"context"
	"io"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxBlobBytes is the largest size that a descriptor may state: what every JSON
// reader represents exactly.
const maxBlobBytes = 1<<53 - 1

// OpenBlob opens a blob of f whole. The reader returns io.EOF only if the blob
// had the size and the digest that desc promises, else an error wrapping
// ErrDigest.
func OpenBlob(ctx context.Context, f Fetcher, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if err := CheckDescriptor(desc); err != nil {
		return nil, err
	}
	if desc.Size == 0 { // there is no range to ask for
		return NewVerifier(io.NopCloser(strings.NewReader("")), desc), nil
	}
	r, err := f.OpenRange(ctx, desc, 0, -1)
	if err != nil {
		return nil, err
	}
	return NewVerifier(r, desc), nil
}

// ReadBlob returns a blob's verified bytes. One that is larger than limit bytes
// is ErrLimit, before anything is read.
func ReadBlob(ctx context.Context, f Fetcher, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	if desc.Size > limit {
		return nil, errorf(ErrLimit, string(desc.Digest), "is %d bytes, want at most %d", desc.Size, limit)
	}
	r, err := OpenBlob(ctx, f, desc)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// CheckDescriptor refuses a descriptor that nothing should be done with: no
// media type, a digest that [CheckDigest] refuses, a negative size or one over
// 2^53-1. The error wraps ErrFormat.
func CheckDescriptor(desc ocispec.Descriptor) error {
	if desc.MediaType == "" {
		return errorf(ErrFormat, string(desc.Digest), "descriptor has no media type")
	}
	if err := CheckDigest(desc.Digest); err != nil {
		return err
	}
	if desc.Size < 0 || desc.Size > maxBlobBytes {
		return errorf(ErrFormat, string(desc.Digest), "got the size %d, want 0 to 2^53-1", desc.Size)
	}
	return nil
}

// CheckDigest wants "sha256:" and 64 lower-case hex digits, so that a digest is
// safe as part of a path or URL. The error wraps ErrFormat.
func CheckDigest(d digest.Digest) error {
	if algorithm, digits, _ := strings.Cut(string(d), ":"); algorithm != "sha256" || !sha256hex.Is(digits) {
		return errorf(ErrFormat, "", "got the digest %s, want sha256: and %s", errtext.Quoted(string(d)),
			sha256hex.Want)
	}
	return nil
}

// NewVerifier passes r's bytes through and returns io.EOF only if they had the
// size and the digest that desc promises, else an error wrapping ErrDigest: for
// too many bytes, before any beyond the size is given out. Close closes r.
func NewVerifier(r io.ReadCloser, desc ocispec.Descriptor) io.ReadCloser { return newVerifier(r, desc) }

func newVerifier(r io.ReadCloser, desc ocispec.Descriptor) *iox.Verifier {
	err := CheckDigest(desc.Digest)
	if desc.Size < 0 {
		err = errorf(ErrFormat, string(desc.Digest), "has the size %d", desc.Size)
	}
	return &iox.Verifier{
		R: r, Err: err, Size: desc.Size, SHA256: strings.TrimPrefix(string(desc.Digest), "sha256:"),
		Wrong: func(text string) error { return errorf(ErrDigest, string(desc.Digest), "%s", text) },
	}
}
