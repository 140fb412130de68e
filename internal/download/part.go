package download

import (
	"context"
	"crypto/sha256"
	"hash"
)

// part is a Part that was begun. What says so is guarded by the run's mutex.
type part struct {
	*Part
	i        int
	file     File
	progress reporter
	ctx      context.Context //nolint:containedctx // of the part's ranges
	cancel   context.CancelFunc

	// Guarded:
	blocks     []block
	todo       int  // blocks that nobody has or fetches
	from       int  // none of them is before this one
	fetching   int  // workers that fetch ranges
	rangesWork bool // a range was answered with that range
	fails      int  // attempts since the last that did well
	asStream   bool // ranges don't do
	refused    bool // its content was wrong, and is fetched once more
	next       int  // blocks that are hashed
	hashing    bool // somebody hashes
	ahead      int  // blocks of this run that wait for their hash
	damaged    int  // blocks of this run that the disk gave back otherwise

	// Of whoever hashes:
	sum hash.Hash // over the blocks before next
	crc uint32
}

// block is what is known of BlockSize bytes of a part, or less at its end.
type block struct {
	crc   uint32 // CRC-32C as it came off the wire
	state state
}

type state uint8

const (
	todo  state = iota
	taken       // somebody fetches it
	fresh       // has arrived
	old         // arrived in an earlier run, as the journal has it
)

func (b block) arrived() bool { return b.state == fresh || b.state == old }

// blocksOf returns how many blocks a part has.
func blocksOf(size int64) int { return int((max(0, size) + BlockSize - 1) / BlockSize) }

// startWriteback tells the file that block i is there, if it is a whole one: what
// is smaller shares its pages with what is written next to it, and would be
// written twice.
func (p *part) startWriteback(i int) {
	if p.blockSize(i) == BlockSize {
		p.file.StartWriteback(int64(i)*BlockSize, BlockSize)
	}
}

// blockSize returns the size of a part's block i.
func (p *Part) blockSize(i int) int64 { return min(BlockSize, p.Size-int64(i)*BlockSize) }

// usable returns how many bytes of an earlier run a part can go on with: one that
// is read as a stream all or nothing.
func usable(p *Part, claims []claim, ranged bool) int64 {
	if !ranged && len(claims) < blocksOf(p.Size) {
		return 0
	}
	var n int64
	for _, c := range claims {
		n += p.blockSize(int(c.block))
	}
	return n
}

// open begins a part.
func (r *run) open(i int, ranged bool) (*part, error) {
	p := &part{Part: &r.job.Parts[i], i: i}
	claims := r.opts.Journal.of(i)
	resumed := usable(p.Part, claims, ranged)
	p.progress = reporter{report: r.opts.Progress, name: p.Name, total: p.Size}
	p.progress.begin(resumed)
	var err error
	if p.file, err = r.job.Create(i); err != nil {
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancel(r.ctx)
	p.blocks = make([]block, blocksOf(p.Size))
	p.todo = len(p.blocks)
	if resumed > 0 {
		for _, c := range claims {
			p.blocks[c.block] = block{c.crc, old}
			p.todo--
		}
	}
	p.restart()
	return p, nil
}

// close lets go of the part's file and of what is asked for.
func (p *part) close() error {
	p.cancel()
	return p.file.Close()
}

// restart begins the hash again.
func (p *part) restart() {
	for i := range p.next {
		if p.blocks[i].state == fresh {
			p.ahead++
		}
	}
	p.sum, p.crc, p.next = sha256.New(), 0, 0
}

// hashable reports whether bytes wait for their hash, or the part for its
// judgement, and nobody is at it.
func (p *part) hashable() bool {
	if p.hashing || p.asStream {
		return false
	}
	return p.complete() || p.next < len(p.blocks) && p.blocks[p.next].arrived()
}

// complete reports whether the part can be judged: all of it is hashed, and
// nobody waits for what a place has to say after its last byte.
func (p *part) complete() bool { return p.next == len(p.blocks) && p.fetching == 0 && !p.asStream }

// fetchable reports whether a range can be asked for.
func (p *part) fetchable() bool {
	if p.todo == 0 || p.asStream || !p.rangesWork && p.fetching > 0 {
		return false
	}
	for p.blocks[p.from].state != todo {
		p.from++
	}
	// What waits for bytes of an earlier run may wait on the disk: to read those
	// takes a while, and the wire has nothing better to do.
	return p.from <= p.next || p.ahead < Ahead/BlockSize || p.blocks[p.next].state == old
}

// take takes the first blocks to fetch: n, or all to the end of the part where one
// range holds them and less than n whole blocks would be left, which are not worth a
// request. The part is fetchable.
func (p *part) take(n int) (first, count int) {
	first = p.from
	if left := p.Size - int64(first+n)*BlockSize; left < int64(n)*BlockSize &&
		len(p.blocks)-first <= RangeSize/BlockSize {
		n = len(p.blocks) - first
	}
	for count < n && first+count < len(p.blocks) && p.blocks[first+count].state == todo {
		p.blocks[first+count].state = taken
		count++
	}
	p.todo -= count
	p.fetching++
	return first, count
}

// lose makes a block one that is to be fetched.
func (p *part) lose(i int) {
	if p.blocks[i].state == fresh && i >= p.next {
		p.ahead--
	}
	p.blocks[i].state = todo
	p.todo++
	p.from = min(p.from, i)
}

// drop loses every block in a state, and returns their size.
func (p *part) drop(s state) (n int64) {
	for i := range p.blocks {
		if p.blocks[i].state == s {
			p.lose(i)
			n += p.blockSize(i)
		}
	}
	return n
}

// oldBytes returns how many bytes are an earlier run's.
func (p *part) oldBytes() (n int64) {
	for i := range p.blocks {
		if p.blocks[i].state == old {
			n += p.blockSize(i)
		}
	}
	return n
}
