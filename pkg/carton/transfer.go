package carton

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/pkg/progress"
)

const (
	// defaultConcurrency is how many members are read at once where the caller
	// does not say.
	defaultConcurrency = 8
	// memberAttempts is how often a member is read in all, where its source says
	// that another attempt may do better.
	memberAttempts = 3
	// transferBuffer is the size in bytes of the one buffer that each reading
	// goroutine has: it fits a core's cache, where the bytes are hashed, summed
	// and written from.
	transferBuffer = 256 << 10
	// emptyReads is how many reads of nothing in a row are taken for a reader that
	// will never end.
	emptyReads = 100
)

// transfer brings members from a source to the files that they are written to.
type transfer struct {
	src         Source
	concurrency int // 0: the default
	progress    progress.Func
}

// each calls do for every member, for several at once. Members of one bundle
// are done one after another in the order given; what is largest is begun
// first, so that no single member is what everything waits for at the end. The
// first error ends all of it.
func (t *transfer) each(ctx context.Context, members []Member, do func(ctx context.Context, m Member, buf []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := schedule(members)
	workers := cmp.Or(max(t.concurrency, 0), defaultConcurrency)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			buf := make([]byte, transferBuffer)
			for i := next.Add(1); i <= int64(len(jobs)); i = next.Add(1) {
				for _, m := range jobs[i-1] {
					if ctx.Err() != nil {
						return
					}
					if err := do(ctx, m, buf); err != nil {
						cancel(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// schedule splits members into what is to be done one after another.
func schedule(members []Member) [][]Member {
	var jobs [][]Member
	bundles := map[int]int{} // index in jobs
	for _, m := range members {
		i, ok := bundles[m.Bundle]
		if m.Bundle != 0 && ok {
			jobs[i] = append(jobs[i], m)
			continue
		}
		bundles[m.Bundle] = len(jobs)
		jobs = append(jobs, []Member{m})
	}
	total := func(job []Member) (n int64) {
		for _, m := range job {
			n += m.Size
		}
		return n
	}
	slices.SortStableFunc(jobs, func(a, b []Member) int { return cmp.Compare(total(b), total(a)) })
	return jobs
}

// copied is what is known of a member whose content was read and verified.
type copied struct {
	size int64
	crc  uint32 // IEEE
}

// copy writes a member's content to w, from offset 0, and returns when all of it
// was verified. What is written beyond an error is worthless.
func (t *transfer) copy(ctx context.Context, m Member, w io.WriterAt, buf []byte) (copied, error) {
	event := progress.Event{Name: m.Path, Total: m.Size}
	t.progress.Report(event)
	for attempt := 1; ; attempt++ {
		c, err := t.attempt(ctx, m, w, buf)
		if err == nil {
			event.State, event.Done, event.Err = progress.Finished, c.size, nil
			t.progress.Report(event)
			return c, nil
		}
		if attempt == memberAttempts || ctx.Err() != nil || !temporary(err) {
			return c, err
		}
		event.State, event.Done, event.Err = progress.Retrying, 0, err
		t.progress.Report(event)
	}
}

// attempt is where a member's bytes get into a file. It never writes beyond the
// member's size.
func (t *transfer) attempt(ctx context.Context, m Member, w io.WriterAt, buf []byte) (c copied, err error) {
	r, err := t.src.Open(ctx, m.Path)
	if err != nil {
		return c, named(m.Path, err)
	}
	defer r.Close()
	event := progress.Event{Name: m.Path, State: progress.Moving, Total: m.Size}
	for end := false; !end; {
		n, err := fill(r, buf)
		end = err == io.EOF //nolint:errorlint // a wrapped io.EOF is an error, and does not mean that the hash was right
		if err != nil && !end {
			return c, named(m.Path, err)
		}
		if m.Size >= 0 && c.size+int64(n) > m.Size {
			return c, errorf(ErrChecksum, m.Path, "is longer than the %d bytes that it should have", m.Size)
		}
		if n == 0 {
			continue
		}
		c.crc = crc32.Update(c.crc, crc32.IEEETable, buf[:n])
		if _, err := w.WriteAt(buf[:n], c.size); err != nil {
			return c, err
		}
		c.size += int64(n)
		event.Done = c.size
		t.progress.Report(event)
		if err := ctx.Err(); err != nil {
			return c, err
		}
	}
	if m.Size >= 0 && c.size != m.Size {
		return c, errorf(ErrChecksum, m.Path, "ends after %d bytes, want %d", c.size, m.Size)
	}
	return c, nil
}

// fill reads until buf is full or r returns an error, and returns that error as
// it is: io.EOF too.
func fill(r io.Reader, buf []byte) (n int, err error) {
	empty := 0
	for n < len(buf) && err == nil && empty < emptyReads {
		var k int
		k, err = r.Read(buf[n:])
		n += k
		if k == 0 {
			empty++
		} else {
			empty = 0
		}
	}
	if empty == emptyReads && err == nil {
		err = io.ErrNoProgress
	}
	return n, err
}

// temporary reports whether an error says of itself that another attempt may
// do better.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// named returns err saying which member it is about, as errors of this package
// do already.
func named(path string, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Path != "" {
		return err
	}
	return fmt.Errorf("%s: %w", quotePath(path), err)
}
