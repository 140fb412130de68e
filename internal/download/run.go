package download

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// run is a job that is being done.
type run struct {
	ctx     context.Context //nolint:containedctx // a run is one call's work
	cancel  context.CancelCauseFunc
	job     *Job
	opts    Options
	piece   int // blocks of a range
	workers sync.WaitGroup
	buffers sync.Pool
	refused atomic.Bool // see Result

	mu       sync.Mutex
	news     *sync.Cond // something can be done that could not be before
	queue    []unit     // not begun, the largest last
	begun    []*part    // by ranges, and not through
	toStream []*part    // of those, the ones that are now to be read as streams
	left     int        // parts that are not through
	res      Result
}

// unit is what is begun at once: one part by ranges, or streams one after
// another.
type unit struct {
	parts  []int
	ranged bool
	copied bool
	size   int64
}

func newRun(ctx context.Context, cancel context.CancelCauseFunc, job *Job, opts Options) *run {
	r := &run{ctx: ctx, cancel: cancel, job: job, opts: opts}
	r.news = sync.NewCond(&r.mu)
	r.buffers.New = func() any { b := make([]byte, bufferSize); return &b }
	r.piece = pieceBlocks(job.Parts, Concurrency(opts.Concurrency))
	r.queue = units(job.Parts, int64(r.piece)*BlockSize)
	r.left = len(job.Parts)
	for _, u := range r.queue {
		r.res.Total += u.size
		for _, i := range u.parts {
			r.res.There += usable(&job.Parts[i], opts.Journal.of(i), u.ranged)
		}
	}
	return r
}

// pieceBlocks returns how many blocks a range has: RangeSize, and less where
// every worker would otherwise not get some four of them.
func pieceBlocks(parts []Part, workers int) int {
	var total int64
	for i := range parts {
		if parts[i].Ranged && !parts[i].Copied {
			total += parts[i].Size
		}
	}
	piece := min(total/int64(4*workers), RangeSize)
	return int(max(1, (piece+BlockSize-1)/BlockSize))
}

// byRanges reports whether a part of no bundle is read by ranges.
func (p *Part) byRanges() bool { return p.Ranged && p.Size > 0 }

// units splits parts into what is begun at once, the largest last, and copies
// first, so that they are made while others are on the wire. Parts that
// a stream passes anyway and that one range would do for stay with the stream.
func units(parts []Part, piece int64) []unit {
	var list []unit
	bundles := map[int]int{} // index in list
	for i := range parts {
		p := &parts[i]
		ranged := !p.Copied && p.byRanges() && (p.Bundle == 0 || p.Size > piece)
		at, ok := bundles[p.Bundle]
		if ranged || p.Copied || p.Bundle == 0 || !ok {
			at = len(list)
			list = append(list, unit{ranged: ranged, copied: p.Copied})
			if !ranged && !p.Copied && p.Bundle != 0 {
				bundles[p.Bundle] = at
			}
		}
		list[at].parts = append(list[at].parts, i)
		list[at].size += max(0, p.Size)
	}
	// Of the same size, the first that was named is begun first.
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b unit) int {
		if a.copied != b.copied {
			return map[bool]int{true: -1, false: 1}[a.copied]
		}
		return cmp.Compare(a.size, b.size)
	})
	return list
}

// most returns how many workers can have something to do at once.
func (r *run) most() int {
	n := 0
	for _, u := range r.queue {
		n++
		if u.ranged {
			n += int(u.size / (int64(r.piece) * BlockSize))
		}
	}
	return n
}

// work does one thing after another until there is nothing left to do.
func (r *run) work() {
	for {
		do := r.next()
		if do == nil {
			return
		}
		buf := r.buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
		err := do(*buf)
		r.buffers.Put(buf)
		if err != nil {
			r.cancel(err)
			return
		}
	}
}

// task is one thing to do, with a buffer of bufferSize. Its error ends the run.
type task func(buf []byte) error

// next waits for something to do. It returns nil when nothing is left, or the run
// has ended.
func (r *run) next() task {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.ctx.Err() == nil && r.left > 0 {
		if do := r.pick(); do != nil {
			return do
		}
		r.news.Wait()
	}
	r.news.Broadcast()
	return nil
}

// pick chooses what to do: bytes that wait for their hash first, so that they
// are read back from memory; then a part that nobody is busy with, so that parts
// are hashed on several cores; then a range of the part with the fewest workers.
func (r *run) pick() task {
	var best *part
	for _, p := range r.begun {
		if p.hashable() {
			p.hashing = true
			return func(buf []byte) error { return r.catchUp(p, buf) }
		}
		if p.fetchable() && (best == nil || p.fetching < best.fetching) {
			best = p
		}
	}
	if n := len(r.toStream); n > 0 {
		p := r.toStream[n-1]
		r.toStream = r.toStream[:n-1]
		return func(buf []byte) error { return r.ended(p, r.stream(p, buf)) }
	}
	if n := len(r.queue); n > 0 && (best == nil || best.fetching > 0) {
		u := r.queue[n-1]
		r.queue = r.queue[:n-1]
		return func(buf []byte) error { return r.begin(u, buf) }
	}
	if best == nil {
		return nil
	}
	first, n := best.take(r.piece)
	return func(buf []byte) error { return r.fetch(best, first, n, buf) }
}

// wake makes everybody look again for what there is to do.
func (r *run) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news.Broadcast()
}

// begin begins a unit: streams are read to their end, a part that is read by
// ranges is opened for everybody.
func (r *run) begin(u unit, buf []byte) error {
	if !u.ranged {
		return r.streams(u, buf)
	}
	p, err := r.open(u.parts[0], true)
	if err != nil {
		return err
	}
	return r.beginRanges(p)
}

// beginRanges opens a part for everybody.
func (r *run) beginRanges(p *part) error {
	if err := r.check(p); err != nil {
		p.close()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = append(r.begun, p)
	r.news.Broadcast()
	return nil
}

// check asks for what is to be right besides a part's content, and once more where
// it is refused and a partial is at stake.
func (r *run) check(p *part) error {
	if r.job.Check == nil {
		return nil
	}
	err := r.job.Check(r.ctx, p.i)
	if errtext.IsContent(err) && r.opts.Journal != nil && r.ctx.Err() == nil {
		err = r.job.Check(r.ctx, p.i)
	}
	if errtext.IsContent(err) && r.ctx.Err() == nil {
		r.refuse(p)
	}
	return err
}

// ended closes a part that is done with, and returns err or what closing says.
func (r *run) ended(p *part, err error) error {
	r.mu.Lock()
	r.begun = slices.DeleteFunc(r.begun, func(q *part) bool { return q == p })
	r.left--
	r.news.Broadcast()
	r.mu.Unlock()
	if cerr := p.close(); err == nil {
		err = cerr
	}
	return err
}

// closeFiles closes what an error has left open.
func (r *run) closeFiles() {
	for _, p := range r.begun {
		p.close()
	}
}

func (r *run) result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.res.Refused = r.refused.Load()
	return r.res
}
