package download

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

const (
	// atOnce is how many blocks are hashed before somebody looks whether there is
	// something more urgent.
	atOnce = 16
	// maxDamaged is how many blocks of this run a disk may give back other than
	// they were written before it is not worth going on.
	maxDamaged = 16
)

// hash takes the next bytes of a part.
func (p *part) hash(b []byte) {
	p.sum.Write(b)
	p.crc = crc32.Update(p.crc, crc32.IEEETable, b)
}

// clone copies the state of a hash.
func clone(h hash.Hash) hash.Hash {
	c, err := h.(hash.Cloner).Clone() //nolint:forcetypeassert // all of the standard library's are, since Go 1.25
	if err != nil {
		panic("sha256 can't be cloned: " + err.Error()) // its Clone never returns an error
	}
	return c
}

// catchUp hashes blocks that have arrived.
func (r *run) catchUp(p *part, buf []byte) error {
	if err := r.readBack(p, atOnce, buf); err != nil {
		return err
	}
	return r.hashed(p)
}

// readBack hashes up to n blocks that have arrived. One that is not what came
// off the wire is lost.
func (r *run) readBack(p *part, n int, buf []byte) error {
	for range n {
		r.mu.Lock()
		i := p.next
		ready := !p.asStream && i < len(p.blocks) && p.blocks[i].arrived() && r.ctx.Err() == nil
		var b block
		if ready {
			b = p.blocks[i]
		}
		r.mu.Unlock()
		if !ready {
			return nil
		}
		mark, crc := clone(p.sum), p.crc
		got, err := p.hashBlock(i, buf, b.state == old && r.opts.Journal.distrusted())
		if err != nil {
			return err
		}
		if got != b.crc {
			p.sum, p.crc = mark, crc
			return r.damage(p, i)
		}
		r.mu.Lock()
		p.next++
		if b.state == fresh {
			p.ahead--
			if p.ahead == Ahead/BlockSize-1 {
				r.news.Broadcast()
			}
		}
		r.mu.Unlock()
	}
	return nil
}

// hashBlock reads a block from the file and hashes it, and writes it once more where
// that is asked for. It returns the block's CRC-32C; of one that the file is too
// short for, that of what there is.
func (p *part) hashBlock(i int, buf []byte, rewrite bool) (uint32, error) {
	var crc uint32
	off := int64(i) * BlockSize
	for end := off + p.blockSize(i); off < end; {
		b := buf[:min(int64(len(buf)), end-off)]
		n, err := p.file.ReadAt(b, off)
		crc = crc32.Update(crc, castagnoli, b[:n])
		if n < len(b) {
			if errors.Is(err, io.EOF) {
				return ^crc, nil
			}
			return 0, err
		}
		p.hash(b)
		if rewrite {
			if _, err := p.file.WriteAt(b, off); err != nil {
				return 0, err
			}
		}
		off += int64(n)
	}
	return crc, nil
}

// damage loses a block that the disk gave back otherwise than it came.
func (r *run) damage(p *part, i int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.blocks[i].state == fresh {
		if p.damaged++; p.damaged > maxDamaged {
			return r.named(p, fmt.Errorf("read back: %w", errDisk))
		}
	}
	p.lose(i)
	r.res.There -= p.blockSize(i)
	return nil
}

var errDisk = errors.New("the disk gives back other bytes than were written to it")

// hashed ends a turn of hashing, and judges the part once all of it is hashed.
func (r *run) hashed(p *part) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.complete() {
		r.mu.Unlock()
		done, err := r.judge(p)
		r.mu.Lock()
		if done || err != nil {
			return err
		}
	}
	p.hashing = false
	r.queueStream(p)
	r.news.Broadcast()
	return nil
}

// judge ends a part that had its hash. For one that had not it returns false
// where something can be done about it. The caller is who hashes.
func (r *run) judge(p *part) (done bool, err error) {
	if got := hex.EncodeToString(p.sum.Sum(nil)); got != p.SHA256 && p.SHA256 != "" {
		err := r.job.Wrong(p.i, fmt.Sprintf("got sha256 %s, want %s", got, p.SHA256))
		if r.again(p, err) {
			return false, nil
		}
		r.refuse(p)
		return false, err
	}
	r.mu.Lock()
	resumed := p.oldBytes()
	r.mu.Unlock()
	if err := r.finish(p, p.Size, p.crc, resumed); err != nil {
		return false, err
	}
	return true, r.ended(p, nil)
}

// again begins a part with a wrong hash anew, where other bytes can be had: of an
// earlier run's blocks, of another place, and where a partial is at stake of the
// same place, once.
func (r *run) again(p *part, wrong error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.restart()
	if n := p.drop(old); n > 0 {
		r.res.There -= n
		return true
	}
	if p.refused || r.opts.Journal == nil && !p.Elsewhere {
		return false
	}
	p.refused = true
	if p.asStream = p.Elsewhere; !p.asStream {
		r.res.There -= p.drop(fresh)
		p.progress.restart()
		p.progress.retry(wrong)
	}
	return true
}

// refuse notes that a part's content was wrong to the end. Of one that strangers
// link to, in a file of its own, that says nothing about anything else: their hosts
// may answer otherwise tomorrow.
func (r *run) refuse(p *part) {
	if !p.Elsewhere || r.job.Extent > 0 {
		r.refused.Store(true)
	}
}

// finish tells that a part is there and verified.
func (r *run) finish(p *part, size int64, crc uint32, resumed int64) error {
	if err := r.job.Done(p.i, p.file, size, crc); err != nil {
		if errtext.IsContent(err) {
			r.refuse(p)
		}
		return err
	}
	r.mu.Lock()
	r.res.Resumed += resumed
	r.mu.Unlock()
	p.progress.finish(size)
	return nil
}

// recheck reports whether a part is there from an earlier run: one that is read as a
// stream, and that nobody else is busy with. Where not all of it is, what there is of
// it is forgotten.
func (r *run) recheck(p *part, buf []byte) (bool, error) {
	if p.todo == 0 && len(p.blocks) > 0 {
		if err := r.readBack(p, math.MaxInt, buf); err != nil {
			return false, err
		}
		if p.next == len(p.blocks) && hex.EncodeToString(p.sum.Sum(nil)) == p.SHA256 {
			return true, r.finish(p, p.Size, p.crc, p.Size)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.res.There -= p.drop(old)
	p.restart()
	return false, r.ctx.Err()
}
