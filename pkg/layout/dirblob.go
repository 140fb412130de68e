package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/progress"
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
	fi, err := d.statFile(blobPath(dgst))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, errorf(ErrNotFound, string(dgst), "no such blob in %s", quote(d.path))
	case err != nil:
		return 0, err
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
	f, err := d.openFile(blobPath(desc.Digest))
	if err != nil {
		return nil, err
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
	return d.pushBlob(ctx, desc, false, func(f *place.File) (download.Result, error) {
		r, err := open(ctx, 0)
		if err != nil {
			return download.Result{}, err
		}
		v := NewVerifier(r, desc)
		defer v.Close()
		w := &sentWriter{ctx: ctx, w: io.NewOffsetWriter(f, 0), sent: sent}
		_, err = io.CopyBuffer(w, readerFunc(v.Read), make([]byte, copyBuffer))
		return download.Result{}, err
	})
}

// pushRanges is Push of a layer whose ranges are cheap: many at once, and with
// what an earlier push has brought, of which it returns the number of bytes.
func (d *Dir) pushRanges(ctx context.Context, l Layer, budget *download.Budget, watch progress.Func) (resumed int64, err error) {
	err = d.pushBlob(ctx, l.Descriptor, true, func(f *place.File) (download.Result, error) {
		job := l.job(f)
		journal, err := download.OpenJournal(f.Journal(), string(l.Digest), job.Parts)
		if err == nil && f.Stale() && journal.Empty() {
			err = f.Truncate(0)
		}
		if err == nil {
			err = f.Truncate(l.Size)
		}
		if err != nil {
			return download.Result{}, place.Explain("write", f.Name(), err)
		}
		r, err := download.Run(ctx, job, download.Options{
			Concurrency: budget.Connections(), Budget: budget, Journal: journal, Progress: watch,
		})
		resumed = r.Resumed
		return r, err
	})
	return resumed, err
}

// job is the download of a layer into a file.
func (l *Layer) job(f *place.File) download.Job {
	return download.Job{
		Parts: []download.Part{{Name: l.label(), Size: l.Size, SHA256: l.Digest.Encoded(), Ranged: true}},
		Range: func(ctx context.Context, _ int, off, n int64) (io.ReadCloser, error) { return l.OpenRange(ctx, off, n) },
		Whole: func(ctx context.Context, _ int) (io.ReadCloser, error) {
			r, err := l.Open(ctx, 0)
			if err != nil {
				return nil, err
			}
			return NewVerifier(r, l.Descriptor), nil
		},
		Create: func(int) (download.File, error) { return unclosed{f}, nil },
		Done:   func(int, download.File, int64, uint32) error { return nil },
		Wrong: func(_ int, msg string) error {
			return errorf(ErrDigest, string(l.Digest), "%s", msg)
		},
	}
}

// unclosed is a file that is closed by Commit.
type unclosed struct{ *place.File }

func (unclosed) Close() error { return nil }

// pushBlob makes a blob's file and has it filled. With keep, what has arrived
// stays after an error for the next push to go on with, unless it was the content
// that was wrong.
func (d *Dir) pushBlob(
	ctx context.Context, desc ocispec.Descriptor, keep bool, fill func(*place.File) (download.Result, error),
) error {
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
	f, err := d.acquire(ctx, blobPath(desc.Digest), place.Options{Replace: damaged, Resume: keep})
	if err != nil {
		return err
	}
	if f == nil { // another process has pushed it meanwhile
		if there, _, err = d.has(ctx, desc); err == nil && !there {
			err = errorf(ErrDigest, string(desc.Digest), "another process left other bytes in %s", quote(d.path))
		}
		return err
	}
	defer f.Discard() //nolint:errcheck // after Commit and Keep it does nothing
	result, err := fill(f)
	if err == nil {
		return f.Commit()
	}
	if sentence := result.Sentence(quote(f.Partial())); keep && sentence != "" && !errtext.IsContent(err) {
		if kept, _ := f.Keep(); kept {
			err = hint.With(err, "%s", hint.Text(sentence))
		}
	}
	return err
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
