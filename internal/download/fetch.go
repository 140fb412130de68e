package download

import (
	"context"
	"errors"
	"hash"
	"hash/crc32"
	"io"

	"github.com/carton-oci/carton-oci/internal/ranges"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errOther: a place gives another number of bytes than were asked for.
var errOther = errors.New("got another number of bytes than were asked for")

// diskError is an error of a file or journal: no place is to blame.
type diskError struct{ error }

func (e diskError) Unwrap() error { return e.error }

// fetch fetches n blocks of a part, from block first.
func (r *run) fetch(p *part, first, n int, buf []byte) error {
	arrived, err := 0, p.ctx.Err()
	if err == nil {
		arrived, err = r.fetchRange(p, first, n, buf)
	}
	return r.fetched(p, first+arrived, n-arrived, err)
}

// fetchRange returns how many blocks have arrived.
func (r *run) fetchRange(p *part, first, n int, buf []byte) (arrived int, err error) {
	off := int64(first) * BlockSize
	size := min(int64(n)*BlockSize, p.Size-off)
	ctx := p.ctx
	if size < p.Size {
		ctx = ranges.Only(ctx)
	}
	body, err := r.job.Range(ctx, p.i, off, size)
	if err != nil {
		return 0, openError{err}
	}
	defer body.Close()
	r.confirmRanges(p)
	f := &fetcher{r: r, p: p, body: body, buf: buf, block: first, off: off, end: off + size}
	f.startHash()
	defer f.stopHash()
	err = f.receive()
	return f.block - first, err
}

// confirmRanges notes that a part's ranges work: everybody may ask for one.
func (r *run) confirmRanges(p *part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.rangesWork {
		p.rangesWork = true
		r.news.Broadcast()
	}
}

// fetched judges how a fetch ended, and gives back the n blocks from first that did
// not arrive. Those that did are not this fetch's any more: one that was lost since
// may be another's by now.
func (r *run) fetched(p *part, first, n int, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.news.Broadcast()
	p.fetching--
	for i := first; i < first+n; i++ {
		p.lose(i)
	}
	var disk diskError
	switch {
	case p.asStream: // whatever it was, it was told to end
	case err == nil:
		p.fails = 0
		return nil
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case errors.As(err, &disk):
		return disk.error
	case errors.Is(err, ranges.ErrNone), errors.Is(err, errOther):
		p.asStream = true
		p.cancel()
	case Temporary(err) && p.fails+1 < Attempts:
		p.fails++
		p.progress.retry(err)
		return nil
	case r.onceMore(p, err):
		p.progress.retry(err)
		return nil
	default:
		if open, ok := err.(openError); ok { //nolint:errorlint // made by fetchRange, never wrapped
			err = open.error
		}
		return r.named(p, err)
	}
	r.queueStream(p)
	return nil
}

// queueStream makes a part that ranges don't do for one that is read as a stream, once
// nobody is busy with it any more. The caller holds the mutex.
func (r *run) queueStream(p *part) {
	if p.asStream && p.fetching == 0 && !p.hashing {
		for i := range p.blocks {
			if p.blocks[i].arrived() {
				r.res.There -= p.blockSize(i)
			}
		}
		r.toStream = append(r.toStream, p)
	}
}

// named gives an error of a source the part's name.
func (r *run) named(p *part, err error) error {
	if r.job.Named == nil {
		return err
	}
	return r.job.Named(p.i, err)
}

// fetcher receives one range.
type fetcher struct {
	r        *run
	p        *part
	body     io.Reader
	buf      []byte
	block    int   // that is being received
	off, end int64 // in the part

	inline bool // what is received is hashed at once
	mark   hash.Hash
	crc    uint32 // the part's up to mark
}

// receive writes and counts all that was asked for.
func (f *fetcher) receive() error {
	for f.off < f.end {
		if err := f.receiveBlock(); err != nil {
			return err
		}
	}
	// The end of a response is read for its connection to be used again.
	switch n, err := fill(f.body, f.buf[:1]); {
	case n > 0:
		return errOther
	case err != io.EOF: //nolint:errorlint // a wrapped one is an error
		return err
	}
	return nil
}

func (f *fetcher) receiveBlock() error {
	var crc uint32
	got, size := 0, int(f.p.blockSize(f.block))
	defer func() {
		if got < size {
			f.p.progress.back(int64(got))
		}
	}()
	for got < size {
		b := f.buf[:min(len(f.buf), size-got)]
		n, err := fill(f.body, b)
		switch {
		case n == len(b): // an error comes again
		case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF): //nolint:errorlint // the same
			return errOther
		default:
			return err
		}
		crc = crc32.Update(crc, castagnoli, b)
		if f.inline {
			f.p.hash(b)
		}
		if _, err := f.p.file.WriteAt(b, f.off); err != nil {
			return diskError{err}
		}
		got += n
		f.off += int64(n)
		f.p.progress.add(int64(n))
		if err := f.p.ctx.Err(); err != nil {
			return err
		}
	}
	return f.arrived(crc)
}

// arrived notes that the block is there.
func (f *fetcher) arrived(crc uint32) error {
	if err := f.r.remember(f.p, f.block, crc); err != nil {
		return diskError{err}
	}
	r, p := f.r, f.p
	p.startWriteback(f.block)
	r.mu.Lock()
	p.blocks[f.block] = block{crc, fresh}
	r.res.There += p.blockSize(f.block)
	if f.inline {
		p.next++
	} else {
		p.ahead++
		// Whoever was waiting to hash can begin.
		if p.next == f.block {
			r.news.Broadcast()
		}
	}
	r.mu.Unlock()
	f.block++
	if f.inline {
		f.keepMark()
	}
	return nil
}

// remember notes in the journal that a block is in its file.
func (r *run) remember(p *part, block int, crc uint32) error {
	c := claim{uint32(p.i), uint32(block), crc} //nolint:gosec // at most carton.MaxMembers; 2^32 blocks are 4 PiB
	return r.opts.Journal.add(c, p.blockSize(block))
}

// startHash makes a range that begins at the hash one that is hashed as it
// streams.
func (f *fetcher) startHash() {
	f.r.mu.Lock()
	f.inline = f.p.next == f.block && !f.p.hashing && !f.p.asStream
	f.p.hashing = f.p.hashing || f.inline
	f.r.mu.Unlock()
	if f.inline {
		f.keepMark()
	}
}

// stopHash takes back what was hashed of a block that did not arrive whole.
func (f *fetcher) stopHash() {
	if !f.inline {
		return
	}
	f.p.sum, f.p.crc = f.mark, f.crc
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.p.hashing = false
}

// keepMark remembers the hash at the end of a block.
func (f *fetcher) keepMark() { f.mark, f.crc = clone(f.p.sum), f.p.crc }

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

// emptyReads is how many reads of nothing in a row are taken for a reader that
// will never end.
const emptyReads = 100

// Temporary reports whether an error says of itself that another attempt may
// do better.
func Temporary(err error) bool {
	var t interface{ Temporary() bool }
	return !errors.Is(err, context.Canceled) && errors.As(err, &t) && t.Temporary()
}
