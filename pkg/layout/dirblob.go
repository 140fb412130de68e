package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/download"
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
	if n, err = rangeOf(desc, size, off, n, d.path); err != nil {
		return nil, err
	}
	f, err := d.openFile(blobPath(desc.Digest))
	if errors.Is(err, fs.ErrNotExist) { // somebody has deleted it meanwhile
		err = errorf(ErrNotFound, string(desc.Digest), "no such blob in %s", quote(d.path))
	}
	if err != nil {
		return nil, err
	}
	return section(f, f, off, n), nil
}

// checkRange wants n bytes from off to lie inside the blob.
func checkRange(desc ocispec.Descriptor, off, n int64) error {
	if off < 0 || n < 0 || off > desc.Size || n > desc.Size-off {
		return fmt.Errorf("range of %d bytes at %d of %s, which has %d: %w", n, off, desc.Digest, desc.Size,
			io.ErrUnexpectedEOF)
	}
	return nil
}

// Push implements [Store]. The blob gets its name when it is complete, verified
// and on the disk. One that is there already is read and hashed, and replaced where
// it is damaged. After an error what has arrived stays for the next push. Where
// ranges of the layer are cheap, many of them are fetched at once.
func (d *Dir) Push(ctx context.Context, l Layer, w Watch) error {
	if err := CheckDescriptor(l.Descriptor); err != nil {
		return err
	}
	if err := d.create(ctx); err != nil {
		return err
	}
	w = w.NonNil()
	there, damaged, err := d.look(ctx, l.Descriptor, w.Moved)
	if there || err != nil {
		return err
	}
	if damaged {
		w.Retrying(0, errorf(ErrDigest, string(l.Digest), "is damaged in %s, and replaced", quote(d.path)))
	}
	f, err := d.acquire(ctx, blobPath(l.Digest), place.Options{Replace: damaged, Resume: true})
	if err != nil {
		return err
	}
	if f == nil { // another process has pushed it meanwhile
		if there, _, err = d.look(ctx, l.Descriptor, nil); err == nil && !there {
			err = errorf(ErrDigest, string(l.Digest), "another process left other bytes in %s", quote(d.path))
		}
		return err
	}
	return d.fill(ctx, f, l, w)
}

// PushStream implements [Store]: a blob's name is its digest.
func (d *Dir) PushStream(context.Context, int64, Opener, Watch) (digest.Digest, error) {
	return "", ErrNoStream
}

// fill brings a layer's bytes to its file, and gives that its name.
func (d *Dir) fill(ctx context.Context, f *place.File, l Layer, w Watch) error {
	filling := &filling{Watch: w}
	partial := download.NewPartial(f)
	err := partial.End(l.download(ctx, f, partial, filling.report))
	if err != nil {
		return attempted{err}
	}
	filling.end(l.Size, partial.Resumed())
	return nil
}

// filling tells a Watch of a download.
type filling struct {
	Watch
	resumed int64 // that it was told of
}

func (f *filling) report(e progress.Event) {
	switch e.State {
	case progress.Resumed:
		f.resumed = e.Done
		f.Resumed(e.Done)
	case progress.Moving, progress.Finished:
		f.Moved(e.Done)
	case progress.Retrying:
		f.Retrying(e.Done, e.Err)
	}
}

// end tells of a blob that is there, of which resumed bytes were of use.
func (f *filling) end(size, resumed int64) {
	if resumed != f.resumed {
		f.Resumed(resumed)
	}
	f.Sent(size - resumed)
}

// attempted is an error after several attempts: whoever called makes no more.
type attempted struct{ error }

func (e attempted) Unwrap() error { return e.error }
func (attempted) Temporary() bool { return false }

// download fills the blob's file.
func (l *Layer) download(ctx context.Context, f *place.File, partial *download.Partial, watch progress.Func) error {
	job := l.job(ctx, unclosed{f})
	err := partial.TakeOver(ctx, string(l.Digest), &job)
	if err == nil {
		err = f.Truncate(l.Size)
	}
	if err != nil {
		return place.Explain("write", f.Name(), err)
	}
	return partial.Run(ctx, download.Options{Concurrency: l.Connections, Progress: watch})
}

// part is the layer as what is downloaded.
func (l *Layer) part() download.Part {
	return download.Part{Name: l.label(), Size: l.Size, SHA256: l.Digest.Encoded(), Ranged: l.OpenRange != nil}
}

// job is the download of a layer into a file.
func (l *Layer) job(ctx context.Context, f download.File) download.Job {
	return download.Job{
		Parts:  []download.Part{l.part()},
		Extent: l.Size,
		Range: func(ctx context.Context, _ int, off, n int64) (io.ReadCloser, error) {
			return l.OpenRange(ctx, off,
				n)
		},
		Whole: func(ctx context.Context, _ int) (io.ReadCloser, error) {
			r, err := l.Open(ctx, 0)
			if err != nil {
				return nil, err
			}
			return NewVerifier(r, l.Descriptor), nil
		},
		Create: func(int) (download.File, error) { return f, nil },
		Done: func(_ int, _ download.File, _ int64, crc uint32) error {
			if l.OpenRange == nil || l.CheckRanges == nil {
				return nil
			}
			return l.CheckRanges(ctx, crc)
		},
		Wrong: func(_ int, msg string) error {
			return errorf(ErrDigest, string(l.Digest), "%s", msg)
		},
	}
}

// unclosed is a file that is closed by Commit.
type unclosed struct{ *place.File }

func (unclosed) Close() error { return nil }

// Has reports whether a blob is there, which is to say that it has its digest: a
// blob of the right size may be what a disk, a copy or somebody else made of it, and
// an artifact that is pushed relies on it.
func (d *Dir) Has(ctx context.Context, desc ocispec.Descriptor, moved func(off int64)) (bool, error) {
	there, _, err := d.look(ctx, desc, moved)
	return there, err
}

// look reports whether a blob is there, or other bytes are in its place. moved, which
// may be nil, is told how far it has been read.
func (d *Dir) look(
	ctx context.Context, desc ocispec.Descriptor, moved func(off int64),
) (there, damaged bool, err error) {
	size, err := d.Stat(ctx, desc.Digest)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, false, nil
	case err != nil:
		return false, false, err
	case size != desc.Size:
		return false, true, nil
	}
	switch err = readThrough(ctx, d, desc, moved); {
	case errors.Is(err, ErrDigest):
		return false, true, nil
	case errors.Is(err, ErrNotFound): // not any more
		return false, false, nil
	}
	return err == nil, false, err
}

// readThrough reads a blob to its end, and returns what is wrong with it. moved, which
// may be nil, is told how far it is.
func readThrough(ctx context.Context, f Fetcher, desc ocispec.Descriptor, moved func(off int64)) error {
	r, err := OpenBlob(ctx, f, desc)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.CopyBuffer(&sentWriter{ctx: ctx, w: io.Discard, sent: moved}, readerFunc(r.Read),
		make([]byte, copyBuffer))
	return err
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
