package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// copyBuffer is how much is copied at a time, in bytes.
const copyBuffer = 256 << 10

// blobFolder is where blobs lie; each is named by the hex digits of its sha256.
var blobFolder = filepath.Join(ocispec.ImageBlobsDir, string(digest.SHA256))

func blobPath(dgst digest.Digest) string { return filepath.Join(blobFolder, dgst.Encoded()) }

// Stat implements [Store].
func (d *Dir) Stat(_ context.Context, dgst digest.Digest) (int64, error) {
	if err := CheckDigest(dgst); err != nil {
		return 0, err
	}
	fi, err := os.Stat(filepath.Join(d.path, blobPath(dgst)))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return 0, errorf(ErrNotFound, string(dgst), "no such blob in %s", quote(d.path))
	case err != nil:
		return 0, fmt.Errorf("look for blob: %w", err)
	case !fi.Mode().IsRegular():
		return 0, errorf(ErrFormat, string(dgst), "is no file in %s", quote(d.path))
	}
	return fi.Size(), nil
}

// OpenRange implements [Fetcher]. A blob of another size than desc's is
// ErrDigest; a range that ends past it, io.ErrUnexpectedEOF.
func (d *Dir) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	size, err := d.Stat(ctx, desc.Digest)
	if err != nil {
		return nil, err
	}
	if size != desc.Size {
		return nil, errorf(ErrDigest, string(desc.Digest), "is %d bytes in %s, want %d", size, quote(d.path), desc.Size)
	}
	if n < 0 {
		n = size - off
	}
	if err := checkRange(desc, off, n); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(d.path, blobPath(desc.Digest)))
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return exactly(&fileRange{Reader: io.NewSectionReader(f, off, n), Closer: f}, n), nil
}

type fileRange struct {
	io.Reader
	io.Closer
}

// checkRange wants n bytes from off to lie inside the blob.
func checkRange(desc ocispec.Descriptor, off, n int64) error {
	if off < 0 || n < 0 || off > desc.Size || n > desc.Size-off {
		return fmt.Errorf("range of %d bytes at %d of %s, which has %d: %w", n, off, desc.Digest, desc.Size, io.ErrUnexpectedEOF)
	}
	return nil
}

// Push implements [Store]. The blob gets its name when it is complete, verified
// and on the disk. One that is there already, in the right size, is not read.
func (d *Dir) Push(ctx context.Context, desc ocispec.Descriptor, open Opener, sent func(off int64)) error {
	if err := CheckDescriptor(desc); err != nil {
		return err
	}
	if err := d.create(ctx); err != nil {
		return err
	}
	there, damaged, err := d.has(ctx, desc)
	if there || err != nil {
		return err
	}
	f, err := d.acquire(ctx, blobPath(desc.Digest), damaged)
	if err != nil {
		return err
	}
	if f == nil { // another process has pushed it meanwhile
		if there, _, err = d.has(ctx, desc); err == nil && !there {
			err = errorf(ErrDigest, string(desc.Digest), "another process left other bytes in %s", quote(d.path))
		}
		return err
	}
	defer f.Discard() //nolint:errcheck // after Commit it does nothing
	r, err := open(ctx, 0)
	if err != nil {
		return err
	}
	v := NewVerifier(r, desc)
	defer v.Close()
	w := &sentWriter{ctx: ctx, w: io.NewOffsetWriter(f, 0), sent: sent}
	if _, err := io.CopyBuffer(w, readerFunc(v.Read), make([]byte, copyBuffer)); err != nil {
		return err
	}
	return f.Commit()
}

// has reports whether a blob is there in its size, or in another one. Blobs get
// their names when they were verified, so the size is all that is looked at.
func (d *Dir) has(ctx context.Context, desc ocispec.Descriptor) (there, damaged bool, err error) {
	size, err := d.Stat(ctx, desc.Digest)
	if errors.Is(err, ErrNotFound) {
		return false, false, nil
	}
	return err == nil && size == desc.Size, err == nil && size != desc.Size, err
}

// sentWriter tells how far a copy is, and stops it with its context. It lives
// as long as one call.
type sentWriter struct {
	ctx  context.Context //nolint:containedctx // of one call
	w    io.Writer
	off  int64
	sent func(off int64)
}

func (s *sentWriter) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.w.Write(b)
	s.off += int64(n)
	if s.sent != nil {
		s.sent(s.off)
	}
	return n, err
}
