package download

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// streams brings the parts of a unit one after another, each as a verified stream: from
// an earlier run, from its copy on this machine, or from its source.
func (r *run) streams(u unit, buf []byte) error {
	for _, i := range u.parts {
		p, err := r.open(i, false)
		if err != nil {
			return err
		}
		there, err := r.recheck(p, buf)
		if !there && err == nil && p.Copied {
			if there, err = r.copy(p, buf); !there && err == nil && p.byRanges() {
				return r.beginRanges(p)
			}
		}
		if !there && err == nil {
			err = r.stream(p, buf)
		}
		if err := r.ended(p, err); err != nil {
			return err
		}
	}
	return nil
}

// copy reports whether a part could be read from its copy on this machine. Only what
// ends the run is an error.
func (r *run) copy(p *part, buf []byte) (bool, error) {
	size, crc, err := r.attempt(p, r.job.Copy, buf)
	if err == nil {
		return true, r.arrived(p, size, crc)
	}
	if disk, ok := err.(diskError); ok { //nolint:errorlint // made by attempt, never wrapped
		return false, disk.error
	}
	if r.ctx.Err() != nil {
		return false, r.ctx.Err()
	}
	p.progress.restart()
	p.progress.retry(err)
	return false, nil
}

// arrived tells that a part is there which was read as a stream.
func (r *run) arrived(p *part, size int64, crc uint32) error {
	r.mu.Lock()
	r.res.There += max(0, p.Size)
	r.mu.Unlock()
	return r.finish(p, size, crc, 0)
}

// failed gives up a part that can't be had as a stream.
func (r *run) failed(p *part, size int64, err error) error {
	if r.job.Failed == nil || r.ctx.Err() != nil {
		return err
	}
	return r.job.Failed(p.i, size, err)
}

// stream writes a part from its beginning, and again where its source says that
// this may help.
func (r *run) stream(p *part, buf []byte) error {
	p.progress.restart()
	for attempt := 1; ; attempt++ {
		size, crc, err := r.attempt(p, r.job.Whole, buf)
		if err == nil {
			return r.arrived(p, size, crc)
		}
		if disk, ok := err.(diskError); ok { //nolint:errorlint // made by attempt, never wrapped
			return disk.error
		}
		if !r.retries(p, attempt, err) {
			if open, ok := err.(openError); ok { //nolint:errorlint // the same
				err = open.error
			}
			return r.failed(p, size, err)
		}
		p.progress.restart()
		p.progress.retry(err)
	}
}

// retries reports whether a stream that ended in err is read again. Content that is
// refused is, once, where a partial is at stake.
func (r *run) retries(p *part, attempt int, err error) bool {
	switch {
	case r.ctx.Err() != nil:
		return false
	case attempt < Attempts && Temporary(err):
		return true
	}
	return r.onceMore(p, err)
}

// onceMore reports whether a part is fetched again whose bytes ended in err: content
// that is refused is, once, where a partial is at stake. It notes the second time.
func (r *run) onceMore(p *part, err error) bool {
	switch {
	case !errtext.IsContent(err) || errors.As(err, new(openError)):
		return false
	case p.refused || r.opts.Journal == nil:
		r.refuse(p)
		return false
	}
	p.refused = true
	return true
}

// openError is an error of a place that has given no bytes.
type openError struct{ error }

func (e openError) Unwrap() error { return e.error }

// opener opens all of a part, as Job.Whole does.
type opener func(ctx context.Context, i int) (io.ReadCloser, error)

// attempt reads a part once. It never writes beyond the part's size.
func (r *run) attempt(p *part, open opener, buf []byte) (size int64, crc uint32, err error) {
	body, err := open(r.ctx, p.i)
	if err != nil {
		return 0, 0, openError{r.named(p, err)}
	}
	defer body.Close()
	var block uint32 // the CRC-32C of the block that is being received
	for end := false; !end; {
		n, err := fill(body, buf)
		end = err == io.EOF //nolint:errorlint // wrapped, it does not mean that the hash was right
		if err != nil && !end {
			return size, crc, r.named(p, err)
		}
		if p.Size >= 0 && size+int64(n) > p.Size {
			return size, crc, r.job.Wrong(p.i, fmt.Sprintf("is longer than the %d bytes that it should have", p.Size))
		}
		if n == 0 {
			continue
		}
		crc = crc32.Update(crc, crc32.IEEETable, buf[:n])
		if _, err := p.file.WriteAt(buf[:n], size); err != nil {
			return size, crc, diskError{err}
		}
		block = crc32.Update(block, castagnoli, buf[:n])
		size += int64(n)
		if p.Size >= 0 && (size%BlockSize == 0 || size == p.Size) {
			if err := r.remember(p, blocksOf(size)-1, block); err != nil {
				return size, crc, diskError{err}
			}
			p.startWriteback(blocksOf(size) - 1)
			block = 0
		}
		p.progress.add(int64(n))
		if err := r.ctx.Err(); err != nil {
			return size, crc, err
		}
	}
	if p.Size >= 0 && size != p.Size {
		return size, crc, r.job.Wrong(p.i, fmt.Sprintf("ends after %d bytes, want %d", size, p.Size))
	}
	return size, crc, nil
}
