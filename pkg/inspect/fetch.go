package inspect

import (
	"context"
	"errors"
	"io"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// inRanges is the size in bytes from which a tensor is fetched over several
// connections. A smaller one is one request: where each costs a token or a
// redirect, that is worth more.
const inRanges = 64 << 20

// File is where [Fetch] writes: offset 0 is the first element's.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// FetchOptions say how a tensor is fetched. The zero value is useful.
type FetchOptions struct {
	// Concurrency is how many connections are open at once; 0 is 8.
	Concurrency int
	// Progress is told how far it is.
	Progress progress.Func
}

// Fetch writes the elements of a tensor, as [Open] gives them, to a file. A large
// tensor whose bytes can be had by ranges comes over several connections. It is
// verified where Open says so; after an error what was written is worthless.
func Fetch(ctx context.Context, src carton.Source, t *Tensor, f File, opts FetchOptions) (verified bool, err error) {
	if t.Bytes >= inRanges && t.byRange() {
		return false, fetchRanges(ctx, src, t, f, opts)
	}
	r, verified, err := Open(ctx, src, t)
	if err != nil {
		return false, err
	}
	n, err := io.Copy(io.NewOffsetWriter(f, 0), io.LimitReader(r, t.Bytes))
	if err == nil {
		// What is verified says so only with its end, and no more may come.
		var more int64
		if more, err = io.Copy(io.Discard, r); err == nil && n+more != t.Bytes {
			err = io.ErrUnexpectedEOF
		}
	}
	return verified, errors.Join(err, r.Close())
}

// byRange reports whether Open would ask for the tensor's bytes and no others.
func (t *Tensor) byRange() bool {
	m := t.in.Member
	return t.in.format != "" && t.View == nil && ranged(m) && (m.Size < 0 || m.Size-t.Bytes > wholeSlack)
}

// fetchRanges fetches a span of a member.
func fetchRanges(ctx context.Context, src carton.Source, t *Tensor, f File, opts FetchOptions) error {
	path, from := t.in.Path, t.Offset
	_, err := download.Run(ctx, download.Job{
		Parts: []download.Part{{Name: t.Name, Size: t.Bytes, Ranged: true}},
		Range: func(ctx context.Context, _ int, off, n int64) (io.ReadCloser, error) {
			return src.OpenRange(ctx, path, from+off, n)
		},
		Whole: func(ctx context.Context, _ int) (io.ReadCloser, error) {
			return src.OpenRange(ctx, path, from, t.Bytes)
		},
		Create: func(int) (download.File, error) { return keepOpen{f}, nil },
		Done:   func(int, download.File, int64, uint32) error { return nil },
		Wrong: func(_ int, msg string) error {
			return &carton.Error{Path: path, Kind: carton.ErrChecksum, Msg: msg}
		},
		Named: func(_ int, err error) error { return err },
	}, download.Options{Concurrency: opts.Concurrency, Progress: opts.Progress})
	return err
}

// keepOpen is a file that stays open.
type keepOpen struct{ File }

func (keepOpen) Close() error                { return nil }
func (keepOpen) StartWriteback(off, n int64) {}
