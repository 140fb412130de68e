package carton

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

// transfer brings members from a source to the files that they are written to.
type transfer struct {
	src         Source
	concurrency int // 0: the default
	progress    progress.Func
	copies      *Copies // nil: none
}

// target is where members go.
type target interface {
	// offset is where a member begins in its file.
	offset(m Member) int64
	// create opens the member's file, at the member's offset.
	create(m Member) (download.File, error)
	// done is told that all of a member is in f and verified.
	done(m Member, f download.File, size int64, crc uint32) error
}

// job is the download of members, all of which are regular.
func (t *transfer) job(members []Member, to target) download.Job {
	parts := make([]download.Part, len(members))
	for i, m := range members {
		parts[i] = download.Part{
			Name: m.Path, Size: m.Size, SHA256: m.Hash, Offset: to.offset(m),
			Ranged: m.Ranged && m.Size >= 0, Elsewhere: m.Place == PlaceLinked, Bundle: m.Bundle,
			Copied: t.copies.has(m),
		}
	}
	return download.Job{
		Parts: parts,
		Range: func(ctx context.Context, i int, off, n int64) (io.ReadCloser, error) {
			return t.src.OpenRange(ctx, members[i].Path, off, n)
		},
		Whole: func(ctx context.Context, i int) (io.ReadCloser, error) {
			return t.src.Open(ctx, members[i].Path)
		},
		Copy: func(ctx context.Context, i int) (io.ReadCloser, error) { return t.copies.open(ctx, members[i]) },
		Check: func(ctx context.Context, i int) error {
			return named(members[i].Path, t.src.CheckFraming(ctx, members[i].Path))
		},
		Create: func(i int) (download.File, error) { return to.create(members[i]) },
		Done: func(i int, f download.File, size int64, crc uint32) error {
			if err := CheckCRC(t.src, members[i].Path, crc); err != nil {
				return err
			}
			return to.done(members[i], f, size, crc)
		},
		Wrong: func(i int, msg string) error { return errorf(ErrChecksum, members[i].Path, "%s", msg) },
		Named: func(i int, err error) error { return named(members[i].Path, err) },
	}
}

// options are those of a download of t.
func (t *transfer) options() download.Options {
	return download.Options{Concurrency: t.concurrency, Progress: t.progress}
}

// named returns err saying which member it is about, as errors of this package
// do already.
func named(path string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) && e.Path != "" {
		return err
	}
	return fmt.Errorf("%s: %w", quotePath(path), err)
}
